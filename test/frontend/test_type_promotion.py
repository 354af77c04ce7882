"""The promotion lattice, which must be JAX's."""

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
from lamina.core.type_promotion import promote_types
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
            got = _outcome(lambda: promote_types(a, b))  # noqa: B023
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
            assert _outcome(lambda: promote_types(*triple)) == want, triple  # noqa: B023


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [("uint8", "int8", "int16"), ("uint32", "int8", "int64"), ("uint64", "int8", "float64"),
     ("int64", "float16", "float16"), ("bfloat16", "float16", "float32"),
     ("float64", "complex64", "complex128")],
)  # fmt: skip
def test_lattice_examples_with_x64(a, b, expected):
    with config.enable_x64(True):
        a, b = np.dtype(a), np.dtype(b)
        assert promote_types((a, False), (b, False))[0] == np.dtype(expected)


def test_refused_promotion_names_both_dtypes_and_says_what_to_do():
    a, b = np.dtype(ml_dtypes.float8_e4m3fn), np.dtype("float32")
    with pytest.raises(TypePromotionError, match=r"\(float32, float8_e4m3fn\).*explicitly"):
        promote_types((a, False), (b, False))
    with pytest.raises(TypePromotionError, match="int4"):
        promote_types((dtypes.int4, False), (np.dtype("int8"), False))
