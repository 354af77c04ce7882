"""Scalar kernels, which their callers do themselves, against NumPy."""

from __future__ import annotations

import json

import numpy as np
import pytest

import lamina
import lamina.numpy as jnp
from lamina import lax

INTEGERS = ("int8", "uint8", "int32", "uint32", "int64", "uint64")


def _edges(dtype: str) -> list:
    info = np.iinfo(dtype)
    return [info.min, info.max, 0, 1, 5, info.max - 2]


def _ops(a, b):
    return {
        "add": a + b,
        "subtract": a - b,
        "multiply": a * b,
        "negate": -a,
        "less": a < b,
        "equal": a == b,
        "at least": a >= b,
    }


def _of_floats(np_, a, b):
    return _ops(a, b) | {"divide": a / b, "root": np_.sqrt(a)}


def _kinds(jitted, *arguments) -> set[str]:
    manifest = json.loads(jitted.lower(*arguments).compile().as_text("manifest"))
    return {kernel["kind"] for kernel in manifest["kernels"]}


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers(dtype: str) -> None:
    with lamina.enable_x64(True):

        def ops(a, b, c):
            return _ops(a, b) | {
                "and": a & b,
                "or": a | b,
                "xor": a ^ b,
                "not": ~a,
                "max": jnp.maximum(a, b),
                "min": jnp.minimum(a, b),
                "clip": lax.clamp(b, a, c),
                "where": jnp.where(a < b, a, b),
                **{f"to {name}": lax.convert_element_type(a, name) for name in INTEGERS},
                "to float": lax.convert_element_type(a, "float64"),
                "to bool": lax.convert_element_type(a, "bool"),
            }

        jitted = lamina.jit(ops)
        values = [np.asarray(v, dtype) for v in _edges(dtype)]
        c = values[1]
        for a in values:
            for b in values:
                with np.errstate(over="ignore"):
                    expected = {k: np.asarray(v) for k, v in _ops(a, b).items()} | {
                        "and": a & b,
                        "or": a | b,
                        "xor": a ^ b,
                        "not": ~a,
                        "max": np.maximum(a, b),
                        "min": np.minimum(a, b),
                        "clip": np.minimum(np.maximum(a, b), c),
                        "where": np.where(a < b, a, b),
                        **{f"to {name}": a.astype(name) for name in INTEGERS},
                        "to float": a.astype("float64"),
                        "to bool": a.astype("bool"),
                    }
                for name, value in jitted(a, b, c).items():
                    assert np.array_equal(value, expected[name]), (name, a, b)
        assert "scalar" in _kinds(jitted, c, c, c)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floats(dtype: str) -> None:
    with lamina.enable_x64(True):
        jitted = lamina.jit(lambda a, b: _of_floats(jnp, a, b))
        values = [np.asarray(v, dtype) for v in (0.0, -0.0, 1.5, -2.25, np.inf, -np.inf, np.nan)]
        for a in values:
            for b in values:
                with np.errstate(invalid="ignore", divide="ignore"):
                    expected = _of_floats(np, a, b)
                for name, value in jitted(a, b).items():
                    want = np.asarray(expected[name])
                    assert np.array_equal(value, want, equal_nan=want.dtype.kind == "f"), (
                        name,
                        a,
                        b,
                    )
                    assert (
                        want.dtype.kind != "f"
                        or np.isnan(want)
                        or (np.signbit(value) == np.signbit(want))
                    )
        assert _kinds(jitted, *values[:2]) == {"scalar"}


def test_booleans_and_what_is_no_scalar_work() -> None:
    jitted = lamina.jit(lambda p, q: {"and": p & q, "or": p | q, "xor": p ^ q, "not": ~p})
    for p in (True, False):
        for q in (True, False):
            got = jitted(p, q)
            want = {"and": p and q, "or": p or q, "xor": p != q, "not": not p}
            assert {k: bool(v) for k, v in got.items()} == want
    assert "scalar" not in _kinds(lamina.jit(lambda x: jnp.exp(x) + 1), 1.0)
