"""Dtypes: canonical widths, names, kinds, and the promotion lattice, which must be JAX's."""

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import dtypes as jax_dtypes
from jax._src.lax.lax import _convert_element_type

from lamina import config
from lamina.core import dtypes
from lamina.errors import TypePromotionError

ALL = [d for d in dtypes._SHORT if d != dtypes.float0]
WEAK = [np.dtype(t) for t in ("int32", "float32", "complex64", "int64", "float64", "complex128")]


def _jax_value(dtype: np.dtype, weak: bool) -> Any:
    # A weakly typed array of a given dtype; JAX's public functions make only the default ones. A
    # dtype stands for strong ones: XLA has no arrays of all.
    return dtype if not weak else _convert_element_type(jnp.zeros((), dtype), dtype, weak_type=weak)


def _nodes(x64: bool) -> list[tuple[np.dtype, bool]]:
    held = lambda d: dtypes.canonicalize(d) == d  # noqa: E731
    return [(d, False) for d in ALL if held(d)] + [(d, True) for d in WEAK if held(d)]


def _outcome(promote):
    try:
        dtype, weak = promote()
    except (TypePromotionError, jax_dtypes.TypePromotionError):
        return "refused"
    return np.dtype(dtype), bool(weak)


@pytest.mark.parametrize("x64", [False, True])
def test_promotion_of_all_pairs_is_jax_s(x64):
    with jax.enable_x64(x64), config.enable_x64(x64):
        values = {n: _jax_value(*n) for n in _nodes(x64)}
        wrong = []
        for a, b in itertools.product(values, values):
            want = _outcome(lambda: jax_dtypes.result_type(values[a], values[b],  # noqa: B023
                                                           return_weak_type_flag=True))
            got = _outcome(lambda: dtypes.promote_types(a, b))  # noqa: B023
            if want != got:
                wrong.append((a, b, want, got))
    assert not wrong


@pytest.mark.parametrize("x64", [False, True])
def test_promotion_of_triples_is_jax_s(x64):
    with jax.enable_x64(x64), config.enable_x64(x64):
        values = {n: _jax_value(*n) for n in _nodes(x64) if n[0] not in dtypes.FLOAT8}
        for triple in list(itertools.combinations(values, 3))[::7]:
            want = _outcome(lambda: jax_dtypes.result_type(
                *[values[n] for n in triple], return_weak_type_flag=True))  # noqa: B023
            assert _outcome(lambda: dtypes.promote_types(*triple)) == want, triple  # noqa: B023


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [("uint8", "int8", "int16"), ("uint32", "int8", "int64"), ("uint64", "int8", "float64"),
     ("int64", "float16", "float16"), ("bfloat16", "float16", "float32"),
     ("float64", "complex64", "complex128")],
)  # fmt: skip
def test_lattice_examples_with_x64(a, b, expected):
    with config.enable_x64(True):
        a, b = np.dtype(a), np.dtype(b)
        assert dtypes.promote_types((a, False), (b, False))[0] == np.dtype(expected)


def test_refused_promotion_names_both_dtypes_and_says_what_to_do():
    a, b = np.dtype(ml_dtypes.float8_e4m3fn), np.dtype("float32")
    with pytest.raises(TypePromotionError, match=r"\(float32, float8_e4m3fn\).*explicitly"):
        dtypes.promote_types((a, False), (b, False))
    with pytest.raises(TypePromotionError, match="int4"):
        dtypes.promote_types((dtypes.int4, False), (np.dtype("int8"), False))


@pytest.mark.parametrize("name", ["int64", "uint64", "float64", "complex128"])
def test_64_bit_types_are_narrowed_without_x64(name):
    wide = np.dtype(name)
    with config.enable_x64(False):
        assert dtypes.canonicalize(wide).itemsize * 2 == wide.itemsize
        assert dtypes.canonicalize(wide).kind == wide.kind
    with config.enable_x64(True):
        assert dtypes.canonicalize(wide) == wide


@pytest.mark.parametrize(("kind", "narrow", "wide"), [
    (bool, "bool", "bool"), (int, "int32", "int64"), (float, "float32", "float64"),
    (complex, "complex64", "complex128"),
])  # fmt: skip
def test_default_dtypes_of_python_scalars(kind, narrow, wide):
    with config.enable_x64(False):
        assert dtypes.canonicalize(kind) == dtypes.default_dtype(kind) == np.dtype(narrow)
    with config.enable_x64(True):
        assert dtypes.canonicalize(kind) == np.dtype(wide)


@pytest.mark.parametrize("bad", ["U5", "object", "datetime64[s]", "S3", np.dtype([("x", "f4")])])
def test_dtypes_that_arrays_cannot_have_are_refused(bad):
    with pytest.raises(TypeError, match="is not a dtype that arrays can have"):
        dtypes.canonicalize(bad)


def test_short_names_go_both_ways_and_are_jax_s():
    for d in ALL:
        assert dtypes.from_short_name(dtypes.short_name(d)) == d
        with jax.enable_x64(True):
            assert jax.core.ShapedArray((), d).str_short(short_dtypes=True) == (
                f"{dtypes.short_name(d)}[]"
            )
    with pytest.raises(KeyError):
        dtypes.from_short_name("f31")


KINDS = [np.generic, np.number, np.integer, np.signedinteger, np.unsignedinteger, np.inexact,
         np.floating, np.complexfloating, np.bool_]  # fmt: skip


def test_issubdtype_is_jax_s():
    for d, kind in itertools.product(ALL, KINDS):
        assert dtypes.issubdtype(d, kind) == jnp.issubdtype(d, kind), (d, kind)
    for a, b in itertools.product(KINDS, KINDS):
        assert dtypes.issubdtype(a, b) == jnp.issubdtype(a, b), (a, b)
    for a, b in itertools.product(ALL, ALL):
        assert dtypes.issubdtype(a, b) == jnp.issubdtype(a, b), (a, b)


def test_every_dtype_has_exactly_one_kind():
    for d in ALL:
        kinds = [d == np.bool_, dtypes.is_integer(d), dtypes.is_float(d), dtypes.is_complex(d)]
        assert sum(map(bool, kinds)) == 1, d
        assert dtypes.is_inexact(d) == (kinds[2] or kinds[3])
        assert dtypes.is_integer(d) == (dtypes.is_signed(d) or dtypes.is_unsigned(d))
        assert not (dtypes.is_signed(d) and dtypes.is_unsigned(d))


def test_tangent_dtypes():
    for d in ALL:
        expected = d if dtypes.is_inexact(d) else dtypes.float0
        assert dtypes.tangent_dtype(d) == expected
    assert dtypes.float0 == jax_dtypes.float0


def test_real_and_complex_partners():
    for d in ALL:
        if dtypes.is_complex(d):
            assert dtypes.complex_dtype(dtypes.real_dtype(d)) == d
    assert dtypes.complex_dtype(np.dtype("float16")) == np.dtype("complex64")
    assert dtypes.complex_dtype(np.dtype("float64")) == np.dtype("complex128")


def test_limits():
    assert dtypes.finfo(ml_dtypes.bfloat16).bits == 16
    assert dtypes.finfo("complex64").max == np.finfo("float32").max
    assert (dtypes.iinfo(ml_dtypes.int4).min, dtypes.iinfo(ml_dtypes.uint4).max) == (-8, 15)
    assert dtypes.iinfo("int16").max == 32767
