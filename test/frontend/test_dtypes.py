"""Dtypes: canonical widths, names and kinds, which must be JAX's."""

import itertools

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import dtypes as jax_dtypes

from lamina import config
from lamina.core import dtypes

ALL = [d for d in dtypes._SHORT if d != dtypes.float0]


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
