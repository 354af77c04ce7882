"""Calls of what is compiled run no Python, whatever the arguments are; those that must say which."""

from __future__ import annotations

import collections
import dataclasses
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lamina
import lamina.numpy as jnp

Pair = collections.namedtuple("Pair", "a b")


@lamina.tree_util.register_dataclass
@dataclasses.dataclass
class Fields:
    a: Any
    b: Any


@lamina.tree_util.register_pytree_node_class
class Node:
    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b

    def tree_flatten(self) -> tuple[tuple[Any, Any], None]:
        return (self.a, self.b), None

    @classmethod
    def tree_unflatten(cls, _: None, children: Any) -> Node:
        return cls(*children)


def python_functions(call: Callable[[], Any]) -> list[str]:
    """The functions of Python that run in a call that was made before."""
    call()
    call()
    found: list[str] = []

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code is not call.__code__:
            found.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found


_SLOW = {"_miss", "miss", "trace_call", "get_aval", "bind", "compile_program"}
"""What tracing and looking up in Python begin with."""


def _twice(x):
    return lamina.tree.map(lambda leaf: leaf * 2, x)


X = jnp.ones(3)
ARGUMENTS = {
    "scalar": jnp.float32(1), "weak type": jnp.asarray(1.0), "Python's int": 3, "Python's float": 2.5,
    "Python's bool": True, "complex": 1j, "NumPy's scalar": np.float32(2), "NumPy's array": np.ones(3, np.float32),
    "of 64 bits": np.ones(3), "bf16": jnp.ones(3, "bfloat16"), "empty": jnp.ones((0, 4)),
    "list": [X, [X, (X,)]], "dict of 100": {f"k{i:02}": X for i in range(100)}, "None within": (X, None, {"a": X}),
}  # fmt: skip


@pytest.mark.parametrize("name", ARGUMENTS)
def test_no_python_runs(name):
    f, x = lamina.jit(_twice), ARGUMENTS[name]
    assert python_functions(lambda: f(x)) == []
    for found, given in zip(lamina.tree.leaves(f(x)), lamina.tree.leaves(x), strict=True):
        np.testing.assert_allclose(np.asarray(found, np.complex64), np.asarray(given, np.complex64) * 2)


def test_no_python_runs_for_any_kind_of_parameter():
    def f(x, n=2, *rest, scale=1.0, **more):
        return x * n * scale + sum(rest) + sum(more.values())

    static = lamina.jit(f, static_argnums=1)
    by_name = lamina.jit(f, static_argnames=("n", "scale"))
    plain = lamina.jit(f)
    for call in (
        lambda: static(X, 3), lambda: static(X, 3, X, X), lambda: by_name(X, n=3), lambda: by_name(X, 3),
        lambda: by_name(X, scale=2.0), lambda: plain(X), lambda: plain(X, scale=X), lambda: plain(x=X, n=2),
        lambda: plain(X, 2, X, more=X, other=1.0),
    ):  # fmt: skip
        assert python_functions(call) == []


def test_no_python_runs_where_arguments_are_donated():
    f = lamina.jit(lambda x, y: (x + y, y), donate_argnums=0)
    state = [jnp.ones(4)]
    y = jnp.ones(4)

    def step() -> None:
        state[0] = f(state[0], y)[0]

    assert python_functions(step) == []
    assert float(state[0][0]) == 4
    old = state[0]
    step()
    with pytest.raises(RuntimeError, match="donated|deleted"):
        old + 1


def test_operators_do_no_more_than_look_whether_something_is_traced():
    for call in (lambda: X + 1, lambda: X * X, lambda: 2.0 - X, lambda: 2.0 / X, lambda: X > 0):
        ran = python_functions(call)
        assert len(ran) < 9 and not _SLOW & set(ran), ran


@pytest.mark.parametrize("x", [Fields(X, X), Pair(X, X), Node(X, X)])
def test_containers_of_one_s_own_cost_what_they_are_made_of(x):
    """Their parts are taken and put together by Python; nothing is traced or looked up there."""
    f = lamina.jit(_twice)
    ran = python_functions(lambda: f(x))
    assert not _SLOW & set(ran), ran
    assert type(f(x)) is type(x) and float(f(x).a[0]) == 2


def test_numpy_sees_the_array_s_own_memory():
    x = jnp.arange(1 << 16, dtype=np.float32) + 1
    first, second = np.asarray(x), np.asarray(x)
    assert first.ctypes.data == second.ctypes.data and np.shares_memory(first, second)
    assert first.ctypes.data == x.unsafe_buffer_pointer() and not first.flags.writeable
    for view in (np.array(x, copy=False), np.from_dlpack(x), np.asarray(memoryview(x))):
        assert view.ctypes.data == first.ctypes.data
    copied = np.array(x)
    assert not np.shares_memory(copied, first)
    copied[0] = 7
    assert first[0] == 1
    keep = np.asarray(jnp.ones(1 << 16) * 3)  # outlives the array
    assert python_functions(lambda: np.asarray(x)) == []
    jnp.zeros(1 << 16).block_until_ready()
    assert (keep == 3).all()
