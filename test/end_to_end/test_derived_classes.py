"""Values of classes derived from NumPy's arrays and Python's numbers are what they derive from, as in
JAX: memory maps, enumerations."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.oracle.judge import check, check_all

import lamina


class Weekday(enum.IntEnum):
    MONDAY = 1


class Metres(float):
    pass


class Phasor(complex):
    pass


class Named(np.ndarray):
    pass


@pytest.fixture(params=["memory map", "derived", "int", "float", "complex"])
def value(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    np.save(tmp_path / "rows.npy", np.arange(6, dtype=np.float32).reshape(2, 3))
    return {
        "memory map": lambda: np.load(tmp_path / "rows.npy", mmap_mode="r"),
        "derived": lambda: np.arange(3, dtype=np.int16).view(Named),
        "int": lambda: Weekday.MONDAY, "float": lambda: Metres(2.5), "complex": lambda: Phasor(1, 2),
    }[request.param]()  # fmt: skip


def test_derived_classes_are_what_they_derive_from(value: Any) -> None:
    check_all(lambda m: {
        "jit": m.jit(lambda v: v * 2)(value), "in a tree": m.jit(lambda t: t["a"][0] + 1)({"a": [value]}),
        "asarray": m.np.asarray(value), "of a type": m.np.asarray(value, "complex64"),
        "unary": m.np.sin(value), "with an array": m.np.ones(1) + value, "after": value + m.np.ones(1),
        "lax": m.lax.mul(value, value), "listed": m.np.array([value, value]),
        "scan": m.lax.scan(lambda c, x: (c, x + value), 0, np.arange(3))[1],
        "placed": m.module.device_put(value), "filled": m.np.full_like(m.np.ones(2), m.np.ravel(value)[0].real),
    })  # fmt: skip
    with lamina.enable_x64(True):
        assert lamina.jit(lambda v: v)(value).dtype == np.asarray(value).dtype


def test_derived_numbers_as_indices_and_shapes() -> None:
    check(lambda m: m.np.arange(3.0)[Weekday.MONDAY])
    check(lambda m: m.np.sum(m.np.ones((2, 3)), axis=Weekday.MONDAY))
    check(lambda m: m.np.clip(m.np.arange(3.0), Metres(0.5), Metres(1.5)))
    check(lambda m: m.np.zeros(3).at[Weekday.MONDAY].set(Metres(2)))


def test_a_derived_class_that_is_a_tree_is_one() -> None:
    class Pair(np.ndarray):
        pass

    lamina.tree_util.register_pytree_node(Pair, lambda p: ((p.view(np.ndarray),), None),
                                          lambda _, parts: {"rebuilt": parts[0]})  # fmt: skip
    f = lamina.jit(lambda t: t)
    for _ in range(2):  # traced, and found again
        np.testing.assert_array_equal(f(np.arange(2.0).view(Pair))["rebuilt"], [0, 1])


@pytest.mark.parametrize("call", [
    lambda x: lamina.jit(lambda a: a)(x), lamina.numpy.asarray, lamina.numpy.sin,
])  # fmt: skip
def test_masks_and_other_byte_orders_are_refused(call: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"masked arrays are not supported.*x\.filled"):
        call(np.ma.masked_array([1.0, 2.0], [0, 1]))
    with pytest.raises(TypeError, match=r"x\.astype\(x\.dtype\.newbyteorder\('='\)\)"):
        call(np.arange(3, dtype=">f4"))
