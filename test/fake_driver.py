"""A driver of NVIDIA's made of Python: what `runtime/src/cuda_driver.h` names, on this host's memory.

Device addresses are no addresses of the process: code that reads one ends at once. Streams are
queues whose work is done when somebody waits for it, as late as the driver may; memory that is freed
is overwritten. Kernels run in the SIMT emulator. `fail` makes a call fail; what a kernel does that a
GPU would not forgive is in `faults`.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import simt
import simt_wgmma

import lamina
from lamina.backends.cuda import program as cuda_program
from lamina.dialects.vendors import ir
from lamina.runtime import _runtime
from lamina.runtime.executable import forget_devices

INVALID_VALUE = 1
OUT_OF_MEMORY, NOT_READY, UNKNOWN, ILLEGAL_ADDRESS, NO_BINARY = 2, 600, 999, 700, 209
_NAMES = {1: b"CUDA_ERROR_INVALID_VALUE", 2: b"CUDA_ERROR_OUT_OF_MEMORY", 209: b"CUDA_ERROR_NO_BINARY_FOR_GPU",
          700: b"CUDA_ERROR_ILLEGAL_ADDRESS", 719: b"CUDA_ERROR_LAUNCH_FAILED", 999: b"CUDA_ERROR_UNKNOWN"}  # fmt: skip
_FIRST_ADDRESS = 1 << 40
_GRAPHS = "cuGraph"

Work = Callable[[], None]


class Stream:
    """Work in order, done when somebody waits for it."""

    def __init__(self) -> None:
        self.queue: list[Work] = []
        self.done = 0
        self.issued = 0
        self.captured: list[Work] | None = None  # what is issued goes here instead
        self.milliseconds = 0.0  # that its work took, as the driver is told

    def put(self, work: Work) -> None:
        if self.captured is not None:
            self.captured.append(work)
            return
        self.queue.append(work)
        self.issued += 1

    def step(self) -> None:
        if self.queue:
            work = self.queue.pop(0)
            work()
            self.done += 1

    def reach(self, place: int) -> None:
        while self.done < place:
            self.step()


@dataclass
class Event:
    stream: Stream | None = None
    place: int = 0
    time: float = 0.0


@dataclass
class Node:
    work: Work
    body: Graph | None = None
    loops: bool = False
    handle: int = 0


@dataclass
class Graph:
    nodes: dict[int, Node] = field(default_factory=dict)
    last: int = 0


class FakeDriver:
    """The calls, by symbol; `version` and `without` make it an older driver."""

    def __init__(
        self,
        *,
        gpus: int = 1,
        memory: int = 1 << 30,
        version: int = 13000,
        capability: tuple[int, int] = (9, 0),
        without: tuple[str, ...] = (),
        libraries: dict[str, Any] | None = None,
    ) -> None:
        """`libraries`: further calls that are found with the driver's, by symbol."""
        self.libraries = libraries or {}
        self.gpus, self.memory, self.version, self.capability = gpus, memory, version, capability
        self.without = without
        self.lock = threading.RLock()
        self.objects: dict[int, Any] = {}
        self.blocks: dict[int, np.ndarray] = {}  # device address -> bytes
        self.next_address = _FIRST_ADDRESS
        self.next_handle = 16
        self.pinned: dict[int, Any] = {}
        self.maps: dict[int, tuple[Any, ...]] = {}  # by what their bits are here
        self.dynamic_shared: dict[str, int] = {}  # that a function may ask for
        self.kernels: dict[str, Any] = {}  # name of a launch -> the text of its gpu.module
        self.conditions: dict[int, int] = {}
        self.calls: list[str] = []
        self.faults: list[BaseException] = []
        self.failures: dict[str, list[int]] = {}
        self.broken = 0  # what a kernel did is said by every call after it
        self.keep: list[Any] = []

    # ---- for tests -------------------------------------------------------------------------------
    def fail(self, symbol: str, code: int = UNKNOWN, after: int = 0) -> None:
        """The call after `after` further ones of this name fails."""
        self.failures.setdefault(symbol, []).extend([0] * after + [code])

    def count(self, symbol: str) -> int:
        return self.calls.count(symbol)

    @property
    def live_bytes(self) -> int:
        return sum(block.size for block in self.blocks.values())

    def drain(self) -> None:
        for thing in list(self.objects.values()):
            if isinstance(thing, Stream):
                thing.reach(thing.issued)

    # ---- plumbing --------------------------------------------------------------------------------
    def table(self) -> dict[str, int]:
        """symbol -> address, for `replace_cuda_driver`."""
        made = {}
        for symbol, (kinds, function) in (_CALLS | self.libraries).items():
            if symbol not in self.without:
                callback = ctypes.CFUNCTYPE(ctypes.c_int, *kinds)(self._guarded(symbol, function))
                self.keep.append(callback)
                made[symbol] = ctypes.cast(callback, ctypes.c_void_p).value or 0
        return made

    def _guarded(self, symbol: str, function: Callable[..., int | None]) -> Callable[..., int]:
        def call(*args: Any) -> int:
            with self.lock:
                self.calls.append(symbol)
                planned = self.failures.get(symbol)
                if planned and (code := planned.pop(0)):
                    return code
                try:
                    return function(self, *args) or 0
                except BaseException as error:  # C code is below
                    self.faults.append(error)
                    self.broken = ILLEGAL_ADDRESS
                    return self.broken

        return call

    def handle(self, thing: Any) -> int:
        self.next_handle += 16
        self.objects[self.next_handle] = thing
        return self.next_handle

    def at(self, address: int, size: int) -> np.ndarray:
        """The bytes at a device address; they must lie within one allocation."""
        for base, block in self.blocks.items():
            if base <= address and address + size <= base + block.size:
                return block[address - base : address - base + size]
        raise IndexError(f"{size} bytes at {address:#x} are no memory of the device")

    # ---- kernels ---------------------------------------------------------------------------------
    def launcher(
        self, function: Any, grid: tuple[int, ...], parameters: int, shared: int
    ) -> Work:
        """The launch of a function on what its parameters are now."""
        if function == "lamina_set_condition":
            handle, address, size, low, high, outside = (
                ctypes.c_int64.from_address(_pointer(parameters, i)).value for i in range(6)
            )
            return lambda: self._decide(handle, address, size, low, high, outside)
        kernel = simt.kernel(self.kernels[function], function)
        assert grid[:3] == tuple(kernel.attributes["known_grid_size"])
        assert grid[3:] == tuple(kernel.attributes["known_block_size"])
        arguments = kernel.regions[0].blocks[0].arguments
        addresses = []
        for i, value in enumerate(arguments):
            at = _pointer(parameters, i)
            if str(value.type) == "!llvm.ptr":  # a tensor map, which is given by value
                assert at % 64 == 0 and ctypes.string_at(at + 8, 120) == bytes(120)
            addresses.append(ctypes.c_uint64.from_address(at).value)
        dynamic = "lamina.dynamic_shared_bytes"
        wanted = kernel.attributes[dynamic].value if dynamic in kernel.attributes else 0
        assert shared == wanted <= self.dynamic_shared.get(function, 48 << 10), (shared, wanted)
        return lambda: self._run(function, arguments, addresses)

    def _run(self, name: str, arguments: Any, addresses: list[int]) -> None:
        arrays = []
        for value, address in zip(arguments, addresses):
            if str(value.type) == "!llvm.ptr":
                arrays.append(self.map(*self.maps[address]))
                continue
            of = ir.MemRefType(value.type)
            dtype = simt._dtype(of.element_type)
            size = math.prod(of.shape) * dtype.itemsize
            assert address % 16 == 0
            arrays.append((self.at(address, size) if size else np.zeros(0, np.uint8)).view(dtype))
        simt.launch(self.kernels[name], name, arrays)

    def map(
        self, type_: int, address: int, sizes: list[int], strides: list[int], box: list[int]
    ) -> simt_wgmma.Map:
        """What a tensor map shows."""
        dtype = np.dtype({0: np.uint8, 6: np.float16, 9: ml_dtypes.bfloat16}[type_])
        size = dtype.itemsize + sum(
            (n - 1) * s for n, s in zip(sizes, [dtype.itemsize, *strides], strict=True)
        )
        return simt_wgmma.Map(self.at(address, size), dtype, sizes, strides, box)

    def _decide(
        self, handle: int, address: int, size: int, low: int, high: int, outside: int
    ) -> None:
        kind = {1: np.uint8, 4: np.int32, 8: np.int64}[size]
        value = int(self.at(address, size).view(kind)[0])
        self.conditions[handle] = int((low <= value <= high) != bool(outside))

    def run_graph(self, nodes: dict[int, Node]) -> None:
        for node in nodes.values():
            if node.body is None:
                node.work()
            elif node.loops:
                while self.conditions[node.handle]:
                    self.run_graph(node.body.nodes)
            elif self.conditions[node.handle]:
                self.run_graph(node.body.nodes)

    def add(self, out: int, graph: int, before: int, count: int, node: Node) -> None:
        held: Graph = self.objects[graph]
        assert count == (1 if held.last else 0)
        assert not count or _pointer(before, 0) == held.last, "no chain"
        held.last = self.handle(node)
        held.nodes[held.last] = node
        _set(out, held.last)


def _pointer(array: int, index: int) -> int:
    return ctypes.c_uint64.from_address(array + 8 * index).value


def _set(out: int, value: int) -> None:
    ctypes.c_uint64.from_address(out).value = value


def _set_int(out: int, value: int) -> None:
    ctypes.c_int.from_address(out).value = value


def _set_text(out: int, text: bytes | None) -> None:
    _set(out, ctypes.cast(ctypes.c_char_p(text), ctypes.c_void_p).value or 0)


# ---- the calls -----------------------------------------------------------------------------------
_P, _I, _U, _L = ctypes.c_void_p, ctypes.c_int, ctypes.c_uint, ctypes.c_uint64
_CALLS: dict[str, tuple[tuple[Any, ...], Callable[..., int | None]]] = {}


def _call(symbol: str, *kinds: Any) -> Callable[..., Any]:
    def register(function: Callable[..., int | None]) -> Callable[..., int | None]:
        _CALLS[symbol] = (kinds, function)
        return function

    return register


_call("cuInit", _U)(lambda self, flags: 0)
_call("cuDriverGetVersion", _P)(lambda self, out: _set_int(out, self.version))
_call("cuGetErrorName", _I, _P)(lambda self, code, out: _set_text(out, _NAMES.get(code)))
_call("cuGetErrorString", _I, _P)(lambda self, code, out: _set_text(out, b"as the test wants it"))
_call("cuDeviceGetCount", _P)(lambda self, out: _set_int(out, self.gpus))
_call("cuDeviceGet", _P, _I)(lambda self, out, number: _set_int(out, number))
_call("cuDeviceTotalMem_v2", _P, _I)(lambda self, out, device: _set(out, self.memory))
_call("cuDevicePrimaryCtxRetain", _P, _I)(lambda self, out, device: _set(out, self.handle("context")))
_call("cuCtxSetCurrent", _P)(lambda self, context: 0)
_call("cuStreamCreate", _P, _U)(lambda self, out, flags: _set(out, self.handle(Stream())))
_call("cuEventCreate", _P, _U)(lambda self, out, flags: _set(out, self.handle(Event())))
_call("cuEventDestroy_v2", _P)(lambda self, event: 0)
_call("cuDeviceGetDefaultMemPool", _P, _I)(lambda self, out, device: _set(out, self.handle("pool")))
_call("cuMemPoolSetAttribute", _P, _I, _P)(lambda self, pool, what, value: 0)
_call("cuMemPoolTrimTo", _P, _L)(lambda self, pool, keep: 0)
_call("cuModuleLoadData", _P, _P)(lambda self, out, image: _set(out, self.handle("module")))
_call("cuModuleUnload", _P)(lambda self, module: 0)


@_call("cuFuncSetAttribute", _P, _I, _I)
def _function_set(self: FakeDriver, function: int, what: int, value: int) -> None:
    assert what == 8 and value <= 227 << 10
    self.dynamic_shared[self.objects[function]] = value


@_call("cuTensorMapEncodeTiled", _P, _I, _U, _P, _P, _P, _P, _P, _I, _I, _I, _I)
def _tensor_map(
    self: FakeDriver, out: int, type_: int, rank: int, address: int, sizes: int, strides: int,
    box: int, steps: int, interleave: int, swizzle: int, promotion: int, fill: int,
) -> int | None:  # fmt: skip
    """Refuses what the driver's documentation says it does."""
    size = [_pointer(sizes, i) for i in range(rank)]
    stride = [_pointer(strides, i) for i in range(rank - 1)]
    length, step = (
        [ctypes.c_uint32.from_address(of + 4 * i).value for i in range(rank)] for of in (box, steps)
    )
    bytes_ = {0: 1, 6: 2, 9: 2}[type_]
    right = (
        out % 64 == 0 and 1 <= rank <= 5 and address % 16 == 0 and length[0] * bytes_ == 128
        and all(0 < n <= 1 << 32 for n in size) and all(0 < n <= 256 for n in length)
        and all(n % 16 == 0 and 0 < n < 1 << 40 for n in stride) and step == [1] * rank
        and (interleave, swizzle, fill) == (0, 3, 0) and promotion in (0, 1, 2, 3)
    )  # fmt: skip
    if not right:
        return INVALID_VALUE
    self.next_handle += 16
    self.maps[self.next_handle] = (type_, address, size, stride, length)
    ctypes.memset(out, 0, 128)
    _set(out, self.next_handle)
    return None


@_call("cuDeviceGetName", _P, _I, _I)
def _device_name(self: FakeDriver, out: int, length: int, device: int) -> None:
    ctypes.memmove(out, b"Emulated GPU\0", 13)


@_call("cuDeviceGetAttribute", _P, _I, _I)
def _device_attribute(self: FakeDriver, out: int, what: int, device: int) -> None:
    _set_int(out, self.capability[what - 75])


@_call("cuMemGetInfo_v2", _P, _P)
def _memory_info(self: FakeDriver, free: int, total: int) -> None:
    _set(free, self.memory - self.live_bytes)
    _set(total, self.memory)


@_call("cuStreamSynchronize", _P)
def _synchronize(self: FakeDriver, stream: int) -> int:
    held: Stream = self.objects[stream]
    held.reach(held.issued)
    return self.broken


@_call("cuStreamWaitEvent", _P, _P, _U)
def _stream_wait(self: FakeDriver, stream: int, event: int, flags: int) -> None:
    recorded = self.objects[event]
    there, place = recorded.stream, recorded.place
    self.objects[stream].put(lambda: there.reach(place))


@_call("cuEventRecord", _P, _P)
def _record(self: FakeDriver, event: int, stream: int) -> None:
    held = self.objects[stream]
    recorded = self.objects[event]

    def note() -> None:
        recorded.time = held.milliseconds

    held.put(note)
    recorded.stream, recorded.place = held, held.issued


@_call("cuEventQuery", _P)
def _query(self: FakeDriver, event: int) -> int:
    held: Event = self.objects[event]
    assert held.stream is not None
    if held.stream.done < held.place:
        held.stream.step()
        return self.broken or NOT_READY
    return self.broken


@_call("cuEventSynchronize", _P)
def _event_synchronize(self: FakeDriver, event: int) -> int:
    held: Event = self.objects[event]
    assert held.stream is not None
    held.stream.reach(held.place)
    return self.broken


@_call("cuEventElapsedTime", _P, _P, _P)
def _elapsed(self: FakeDriver, out: int, before: int, after: int) -> None:
    passed = self.objects[after].time - self.objects[before].time
    ctypes.c_float.from_address(out).value = passed


@_call("cuMemAllocAsync", _P, _L, _P)
def _allocate(self: FakeDriver, out: int, size: int, stream: int) -> int | None:
    assert size > 0
    if self.live_bytes + size > self.memory:
        return OUT_OF_MEMORY
    address = self.next_address
    self.next_address += -(-size // 512) * 512 + 512
    whole = np.full(size + 64, 0xAB, np.uint8)
    start = -whole.ctypes.data % 64
    self.blocks[address] = whole[start : start + size]
    _set(out, address)
    return None


@_call("cuMemFreeAsync", _L, _P)
def _release(self: FakeDriver, address: int, stream: int) -> None:
    assert address in self.blocks, "freed twice"

    def free() -> None:
        self.blocks.pop(address).fill(0xCD)

    self.objects[stream].put(free)


@_call("cuMemHostAlloc", _P, _L, _U)
def _host_allocate(self: FakeDriver, out: int, size: int, flags: int) -> None:
    block = ctypes.create_string_buffer(size + 64)
    address = -(-ctypes.addressof(block) // 64) * 64
    self.pinned[address] = block
    _set(out, address)


@_call("cuMemFreeHost", _P)
def _host_release(self: FakeDriver, block: int) -> None:
    del self.pinned[block]


@_call("cuMemcpyHtoDAsync_v2", _L, _P, _L, _P)
def _to_device(self: FakeDriver, target: int, source: int, size: int, stream: int) -> None:
    pinned = any(base <= source < base + len(block) for base, block in self.pinned.items())
    data = None if pinned else ctypes.string_at(source, size)  # pageable memory is read at once

    def copy() -> None:
        given = ctypes.string_at(source, size) if data is None else data
        self.at(target, size)[:] = np.frombuffer(given, np.uint8)

    self.objects[stream].put(copy)


@_call("cuMemcpyDtoHAsync_v2", _P, _L, _L, _P)
def _to_host(self: FakeDriver, target: int, source: int, size: int, stream: int) -> None:
    def copy() -> None:
        ctypes.memmove(target, self.at(source, size).tobytes(), size)

    self.objects[stream].put(copy)
    if not any(base <= target < base + len(block) for base, block in self.pinned.items()):
        self.objects[stream].reach(self.objects[stream].issued)  # pageable: returns when it is done


def _copier(self: FakeDriver, target: int, source: int, size: int) -> Work:
    def copy() -> None:
        self.at(target, size)[:] = self.at(source, size).copy()

    return copy


def _filler(self: FakeDriver, target: int, element: int, width: int, count: int) -> Work:
    data = np.frombuffer(element.to_bytes(width, "little") * count, np.uint8)

    def fill() -> None:
        self.at(target, width * count)[:] = data

    return fill


@_call("cuMemcpyDtoDAsync_v2", _L, _L, _L, _P)
def _on_device(self: FakeDriver, target: int, source: int, size: int, stream: int) -> None:
    self.objects[stream].put(_copier(self, target, source, size))


for _width, _kind in ((1, ctypes.c_ubyte), (2, ctypes.c_ushort), (4, _U)):

    def _memset(self: FakeDriver, target: int, value: int, count: int, stream: int,
                width: int = _width) -> None:  # fmt: skip
        self.objects[stream].put(_filler(self, target, value, width, count))

    _call(f"cuMemsetD{8 * _width}Async", _L, _kind, _L, _P)(_memset)


@_call("cuModuleGetFunction", _P, _P, ctypes.c_char_p)
def _function(self: FakeDriver, out: int, module: int, name: bytes) -> None:
    _set(out, self.handle(name.decode()))


@_call("cuLaunchKernel", _P, _U, _U, _U, _U, _U, _U, _U, _P, _P, _P)
def _launch(self: FakeDriver, function: int, *rest: Any) -> None:
    stream, parameters = self.objects[rest[7]], rest[8]
    work = self.launcher(self.objects[function], rest[:6], parameters, rest[6])

    def run() -> None:
        work()
        stream.milliseconds += 1

    stream.put(run)


# ---- graphs --------------------------------------------------------------------------------------
_call("cuGraphCreate", _P, _U)(lambda self, out, flags: _set(out, self.handle(Graph())))
_call("cuGraphDestroy", _P)(lambda self, graph: 0)
_call("cuGraphExecDestroy", _P)(lambda self, exec_: 0)


class _Kernel(ctypes.Structure):
    _fields_ = (("function", _L), ("sizes", _U * 6), ("shared", _U), ("parameters", _L))


class _Memset(ctypes.Structure):
    _fields_ = (("target", _L), ("pitch", _L), ("value", _U), ("width", _U), ("count", _L), ("height", _L))  # fmt: skip


class _Copy(ctypes.Structure):
    _fields_ = (("_0", _L * 4), ("from_type", _I), ("_1", _L), ("source", _L), ("_2", _L * 4),
                ("_3", _L * 4), ("to_type", _I), ("_4", _L), ("target", _L), ("_5", _L * 4),
                ("width", _L), ("height", _L), ("depth", _L))  # fmt: skip


class _Conditional(ctypes.Structure):
    _fields_ = (("type", _I), ("_0", _I * 3), ("handle", _L), ("kind", _I), ("size", _U), ("bodies", _L))  # fmt: skip


def _kernel_work(self: FakeDriver, wanted: int) -> Work:
    kernel = _Kernel.from_address(wanted)
    function = self.objects[kernel.function]
    return self.launcher(function, tuple(kernel.sizes), kernel.parameters, kernel.shared)


def _copy_work(self: FakeDriver, wanted: int) -> Work:
    copy = _Copy.from_address(wanted)
    assert (copy.from_type, copy.to_type, copy.height, copy.depth) == (2, 2, 1, 1)
    return _copier(self, copy.target, copy.source, copy.width)


def _memset_work(self: FakeDriver, wanted: int) -> Work:
    memset = _Memset.from_address(wanted)
    return _filler(self, memset.target, memset.value, memset.width, memset.count)


for _symbol, _make, _kinds in (
    ("cuGraphAddKernelNode_v2", _kernel_work, ()),
    ("cuGraphAddMemcpyNode", _copy_work, (_P,)),
    ("cuGraphAddMemsetNode", _memset_work, (_P,)),
):

    def _add(self: FakeDriver, out: int, graph: int, before: int, count: int, wanted: int,
             context: int = 0, make: Any = _make) -> None:  # fmt: skip
        self.add(out, graph, before, count, Node(make(self, wanted)))

    _call(_symbol, _P, _P, _P, _L, _P, *_kinds)(_add)

for _symbol, _make, _kinds in (
    ("cuGraphExecKernelNodeSetParams_v2", _kernel_work, ()),
    ("cuGraphExecMemcpyNodeSetParams", _copy_work, (_P,)),
    ("cuGraphExecMemsetNodeSetParams", _memset_work, (_P,)),
):

    def _update(self: FakeDriver, exec_: int, node: int, wanted: int, context: int = 0,
                make: Any = _make) -> None:  # fmt: skip
        self.objects[exec_][node] = Node(make(self, wanted))

    _call(_symbol, _P, _P, _P, *_kinds)(_update)


@_call("cuGraphConditionalHandleCreate", _P, _P, _P, _U, _U)
def _conditional(
    self: FakeDriver, out: int, graph: int, context: int, first: int, flags: int
) -> None:
    self.next_handle += 16
    self.conditions[self.next_handle] = first
    _set(out, self.next_handle)


@_call("cuGraphAddNode", _P, _P, _P, _L, _P)
def _add_node(self: FakeDriver, out: int, graph: int, before: int, count: int, wanted: int) -> None:
    given = _Conditional.from_address(wanted)
    assert given.type == 13 and given.size == 1
    body = Graph()
    self.add(out, graph, before, count, Node(lambda: None, body, given.kind == 1, given.handle))
    bodies = (ctypes.c_uint64 * 1)(self.handle(body))
    self.keep.append(bodies)
    given.bodies = ctypes.addressof(bodies)


@_call("cuStreamBeginCapture_v2", _P, _I)
def _begin_capture(self: FakeDriver, stream: int, mode: int) -> None:
    assert mode == 1 and self.objects[stream].captured is None
    self.objects[stream].captured = []


@_call("cuStreamEndCapture", _P, _P)
def _end_capture(self: FakeDriver, stream: int, out: int) -> None:
    graph = Graph()
    graph.nodes = {number: Node(work) for number, work in enumerate(self.objects[stream].captured)}
    self.objects[stream].captured = None
    _set(out, self.handle(graph))


def _child(self: FakeDriver, graph: int) -> Node:
    nodes = dict(self.objects[graph].nodes)
    return Node(lambda: self.run_graph(nodes))


@_call("cuGraphAddChildGraphNode", _P, _P, _P, _L, _P)
def _add_child(self: FakeDriver, out: int, graph: int, before: int, count: int, child: int) -> None:
    self.add(out, graph, before, count, _child(self, child))


@_call("cuGraphExecChildGraphNodeSetParams", _P, _P, _P)
def _update_child(self: FakeDriver, exec_: int, node: int, child: int) -> None:
    self.objects[exec_][node] = _child(self, child)


@_call("cuGraphInstantiateWithFlags", _P, _P, _L)
def _instantiate(self: FakeDriver, out: int, graph: int, flags: int) -> None:
    _set(out, self.handle(dict(self.objects[graph].nodes)))


@_call("cuGraphLaunch", _P, _P)
def _graph_launch(self: FakeDriver, exec_: int, stream: int) -> None:
    nodes = dict(self.objects[exec_])
    self.objects[stream].put(lambda: self.run_graph(nodes))


# ---- in tests ------------------------------------------------------------------------------------
_replaced: list[FakeDriver] = []  # callbacks that code may still hold are never freed


@contextlib.contextmanager
def installed(driver: FakeDriver, cache: str | None = None) -> Iterator[FakeDriver]:
    """Programs and arrays use this driver; at the end, kernels must have done nothing forbidden.

    Every program is compiled, unless there is a folder as cache: then `driver.kernels` must know
    those found there.
    """
    compile_kernel = cuda_program.compile_kernel

    def noted(*args: Any, **kwargs: Any) -> Any:
        kernel = compile_kernel(*args, **kwargs)
        for launch in kernel.launches:
            driver.kernels[launch.name] = kernel.texts["gpu"]
        return kernel

    _replaced.append(driver)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAMINA_CACHE", "0" if cache is None else "1")
        patch.setenv("LAMINA_CACHE_DIR", cache or "")
        patch.setattr(cuda_program, "compile_kernel", noted)
        _forget()
        _runtime.replace_cuda_driver(driver.table())
        try:
            yield driver
            driver.drain()
        finally:
            if driver.faults:
                raise driver.faults[0]
            _forget()
            _runtime.replace_cuda_driver(None)


def _forget() -> None:
    lamina.clear_caches()
    forget_devices()
