"""The graphs of the driver made of Python: what the `cuGraph` calls of `runtime/src/cuda/driver.h`
build, conditional nodes included, and how it runs."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from support.fake_cuda import c_calls as fake_c
from support.fake_cuda.c_calls import INT, PTR, UINT, WORD, pointer, set_word

if TYPE_CHECKING:
    from support.fake_cuda.driver import FakeDriver

Work = Callable[[], None]

CALLS: fake_c.Calls = {}
_call = functools.partial(fake_c.register, CALLS)


@dataclass
class Node:
    work: Work
    body: Graph | None = None
    loops: bool = False
    handle: int = 0
    children: dict[int, Node] | None = None  # of a child graph


@dataclass
class Graph:
    nodes: dict[int, Node] = field(default_factory=dict)
    last: int = 0


def launched(nodes: dict[int, Node]) -> list[Node]:
    """The nodes that a launch puts into a stream one by one: those of child graphs are."""
    found = []
    for node in nodes.values():
        found += [node] if node.children is None else launched(node.children)
    return found


def run(driver: FakeDriver, nodes: dict[int, Node]) -> None:
    """Does the work of the nodes, in order."""
    for node in nodes.values():
        if node.body is None:
            node.work()
        elif node.loops:
            while driver.conditions[node.handle]:
                run(driver, node.body.nodes)
        elif driver.conditions[node.handle]:
            run(driver, node.body.nodes)


def _append(
    driver: FakeDriver, out: int, graph: int, before: int, count: int, node: Node
) -> None:
    held: Graph = driver.objects[graph]
    assert count == (1 if held.last else 0)
    assert not count or pointer(before, 0) == held.last, "no chain"
    held.last = driver.handle(node)
    held.nodes[held.last] = node
    set_word(out, held.last)


_call("cuGraphCreate", PTR, UINT)(lambda driver, out, flags: set_word(out, driver.handle(Graph())))
_call("cuGraphDestroy", PTR)(lambda driver, graph: 0)
_call("cuGraphExecDestroy", PTR)(lambda driver, exec_: 0)


class _Kernel(ctypes.Structure):
    _fields_ = (("function", WORD), ("sizes", UINT * 6), ("shared", UINT), ("parameters", WORD))


class _Memset(ctypes.Structure):
    _fields_ = (("target", WORD), ("pitch", WORD), ("value", UINT), ("width", UINT), ("count", WORD),
                ("height", WORD))  # fmt: skip


class _Copy(ctypes.Structure):
    _fields_ = (("_0", WORD * 4), ("from_type", INT), ("_1", WORD), ("source", WORD), ("_2", WORD * 4),
                ("_3", WORD * 4), ("to_type", INT), ("_4", WORD), ("target", WORD), ("_5", WORD * 4),
                ("width", WORD), ("height", WORD), ("depth", WORD))  # fmt: skip


class _Conditional(ctypes.Structure):
    _fields_ = (("type", INT), ("_0", INT * 3), ("handle", WORD), ("kind", INT), ("size", UINT),
                ("bodies", WORD))  # fmt: skip


def _kernel_work(driver: FakeDriver, wanted: int) -> Work:
    kernel = _Kernel.from_address(wanted)
    function = driver.objects[kernel.function]
    return driver.launcher(function, tuple(kernel.sizes), kernel.parameters, kernel.shared)


def _copy_work(driver: FakeDriver, wanted: int) -> Work:
    copy = _Copy.from_address(wanted)
    assert (copy.from_type, copy.to_type, copy.height, copy.depth) == (2, 2, 1, 1)
    return driver.copier(copy.target, copy.source, copy.width)


def _memset_work(driver: FakeDriver, wanted: int) -> Work:
    memset = _Memset.from_address(wanted)
    return driver.filler(memset.target, memset.value, memset.width, memset.count)


for _symbol, _make, _kinds in (
    ("cuGraphAddKernelNode_v2", _kernel_work, ()),
    ("cuGraphAddMemcpyNode", _copy_work, (PTR,)),
    ("cuGraphAddMemsetNode", _memset_work, (PTR,)),
):

    def _add(driver: FakeDriver, out: int, graph: int, before: int, count: int, wanted: int,
             context: int = 0, make: Any = _make) -> None:  # fmt: skip
        _append(driver, out, graph, before, count, Node(make(driver, wanted)))

    _call(_symbol, PTR, PTR, PTR, WORD, PTR, *_kinds)(_add)

for _symbol, _make, _kinds in (
    ("cuGraphExecKernelNodeSetParams_v2", _kernel_work, ()),
    ("cuGraphExecMemcpyNodeSetParams", _copy_work, (PTR,)),
    ("cuGraphExecMemsetNodeSetParams", _memset_work, (PTR,)),
):

    def _update(driver: FakeDriver, exec_: int, node: int, wanted: int, context: int = 0,
                make: Any = _make) -> None:  # fmt: skip
        driver.objects[exec_][node] = Node(make(driver, wanted))

    _call(_symbol, PTR, PTR, PTR, *_kinds)(_update)


@_call("cuGraphConditionalHandleCreate", PTR, PTR, PTR, UINT, UINT)
def _conditional(
    driver: FakeDriver, out: int, graph: int, context: int, first: int, flags: int
) -> None:
    driver.next_handle += 16
    driver.conditions[driver.next_handle] = first
    set_word(out, driver.next_handle)


@_call("cuGraphAddNode", PTR, PTR, PTR, WORD, PTR)
def _add_node(driver: FakeDriver, out: int, graph: int, before: int, count: int, wanted: int) -> None:
    given = _Conditional.from_address(wanted)
    assert given.type == 13 and given.size == 1
    body = Graph()
    _append(driver, out, graph, before, count, Node(lambda: None, body, given.kind == 1, given.handle))
    bodies = (ctypes.c_uint64 * 1)(driver.handle(body))
    driver.keep.append(bodies)
    given.bodies = ctypes.addressof(bodies)


@_call("cuStreamBeginCapture_v2", PTR, INT)
def _begin_capture(driver: FakeDriver, stream: int, mode: int) -> None:
    assert mode == 1 and driver.objects[stream].captured is None
    driver.objects[stream].captured = []


@_call("cuStreamEndCapture", PTR, PTR)
def _end_capture(driver: FakeDriver, stream: int, out: int) -> None:
    graph = Graph()
    graph.nodes = {number: Node(work) for number, work in enumerate(driver.objects[stream].captured)}
    driver.objects[stream].captured = None
    set_word(out, driver.handle(graph))


def _child(driver: FakeDriver, graph: int) -> Node:
    nodes = dict(driver.objects[graph].nodes)
    return Node(lambda: run(driver, nodes), children=nodes)


@_call("cuGraphAddChildGraphNode", PTR, PTR, PTR, WORD, PTR)
def _add_child(driver: FakeDriver, out: int, graph: int, before: int, count: int, child: int) -> None:
    _append(driver, out, graph, before, count, _child(driver, child))


@_call("cuGraphExecChildGraphNodeSetParams", PTR, PTR, PTR)
def _update_child(driver: FakeDriver, exec_: int, node: int, child: int) -> None:
    driver.objects[exec_][node] = _child(driver, child)


@_call("cuGraphInstantiateWithFlags", PTR, PTR, WORD)
def _instantiate(driver: FakeDriver, out: int, graph: int, flags: int) -> None:
    set_word(out, driver.handle(dict(driver.objects[graph].nodes)))


@_call("cuGraphLaunch", PTR, PTR)
def _graph_launch(driver: FakeDriver, exec_: int, stream: int) -> None:
    for node in launched(driver.objects[exec_]):
        one = {0: node}
        plain = node.body is None
        driver.objects[stream].put(node.work if plain else functools.partial(run, driver, one))
