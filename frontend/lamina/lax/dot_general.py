"""dot_general: products of arrays summed over shared axes; dot and batch_matmul are cases of it."""

from __future__ import annotations

import enum
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lamina import config, lax
from lamina.core import Primitive, ShapedArray, Zero, dtypes, get_aval, is_undefined_primal
from lamina.core.array_class import Array
from lamina.core.placed import (
    Dims,
    Names,
    Operands,
    ShardingTypeError,
    Sums,
    spec,
    sums,
    undecided,
    without,
)
from lamina.core.precision_names import OF_FLOATS, DotAlgorithmPreset
from lamina.core.type_promotion import wider_type
from lamina.errors import TypePromotionError
from lamina.lax import hlo
from lamina.lax.batching_rules import past
from lamina.lax.checks import ANY, check_accepted, check_same_dtypes
from lamina.lax.convert import convert

Axes = tuple[int, ...]
DotDimensionNumbers = tuple[
    tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]
]


class Precision(enum.Enum):
    """How exactly a device may compute products of float32. CPUs always compute at HIGHEST."""

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    def __repr__(self) -> str:
        return f"Precision.{self.name}"

    __str__ = __repr__


class DotAlgorithm(NamedTuple):
    """How products are to be computed: the types operands are rounded to and sums are kept in. Here
    products are computed in the operands' own precision or better, whatever is asked for."""

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


PrecisionLike = None | str | Precision | DotAlgorithm | DotAlgorithmPreset | tuple[Any, Any]

_NAMES = {name: Precision[degree] for name, degree in OF_FLOATS.items()}


def canonical_precision(precision: PrecisionLike) -> tuple[Precision, Precision] | None:
    """A pair of precisions, or None for what the target takes by itself."""
    if precision is None:
        precision = config.default_matmul_precision.value
        if precision == "default":
            return None
    if isinstance(precision, str) and precision in DotAlgorithmPreset.__members__:
        precision = DotAlgorithmPreset[precision]
    if precision is DotAlgorithmPreset.TF32_TF32_F32:
        return (Precision.HIGH,) * 2
    if isinstance(precision, DotAlgorithm | DotAlgorithmPreset):
        return None if precision is DotAlgorithmPreset.DEFAULT else (Precision.HIGHEST,) * 2
    if isinstance(precision, tuple | list) and len(precision) == 2:
        return (_one_precision(precision[0]), _one_precision(precision[1]))
    one = _one_precision(precision)
    return one, one


def _one_precision(precision: Any) -> Precision:
    if precision is None:
        return Precision.DEFAULT
    if isinstance(precision, Precision):
        return precision
    if isinstance(precision, str) and precision.lower() in _NAMES:
        return _NAMES[precision.lower()]
    raise ValueError(
        f"Precision must be None, a lax.Precision, one of {', '.join(_NAMES)}, or a pair of these; "
        f"got {precision!r}"
    )


# ---- user functions ----------------------------------------------------------------------------
def dot_general(
    lhs: Any,
    rhs: Any,
    dimension_numbers: DotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """The sum over contracting axes of lhs * rhs, for each index of the batch axes: StableHLO's
    dot_general.

    lhs, rhs                arrays of numbers.
    dimension_numbers       ((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch)), tuples of
                            axes that belong together in pairs, of equal sizes.
    precision               of float32 products: None, a lax.Precision or its name, or a pair of
                            them.
    preferred_element_type  the dtype of sum and result, by default that of the operand whose dtype
                            has the wider range (complex numbers before floats before integers).
    out_sharding            how the result lies on devices, a sharding or None.

    The result's axes are the batch axes, then the other axes of lhs, then those of rhs. Raises
    TypeError where sizes differ, and for a dtype narrower than that of integer or complex operands;
    ValueError for an unknown precision.

    >>> x, y = jnp.ones((5, 2, 3)), jnp.ones((5, 3, 4))
    >>> lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,)))).shape
    (5, 2, 4)
    """
    (lc, rc), (lb, rb) = dimension_numbers
    numbers = tuple(
        (tuple(int(a) for a in left), tuple(int(a) for a in right))
        for left, right in ((lc, rc), (lb, rb))
    )
    to = None if preferred_element_type is None else dtypes.canonicalize(preferred_element_type)
    left, right = get_aval(lhs).dtype, get_aval(rhs).dtype
    wide = _wider(left, right)
    if to is None and left != right:
        to = wide
    if to is not None and not dtypes.is_float(wide) and _bits(to) < _bits(wide):
        raise TypeError(
            "[dot_general] `preferred_element_type` must not be narrower than the original type, got "
            f"{to.name} for {wide.name}"
        )
    lhs, rhs = _of_one_dtype(lhs, rhs)
    have = get_aval(lhs).dtype
    # A type that cannot hold the products is that of the result alone.
    narrows = to is not None and (
        (have.kind == "c" and to.kind != "c") or (dtypes.is_inexact(have) > dtypes.is_inexact(to))
    )
    with undecided(out_sharding is not None):
        out = dot_general_p.bind(
            lhs, rhs,
            dimension_numbers=numbers,
            precision=canonical_precision(precision),
            preferred_element_type=None if narrows else to,
        )  # fmt: skip
    if out_sharding is not None:
        out = lax.under(out, out_sharding, "dot_general")
    return convert(out, to, get_aval(out).weak_type) if to is not None and narrows else out


def _of_one_dtype(lhs: Any, rhs: Any) -> tuple[Any, Any]:
    left, right = get_aval(lhs).dtype, get_aval(rhs).dtype
    if left == right:
        return lhs, rhs
    try:
        common = wider_type(left, right)
    except TypePromotionError:  # such as of f8 and f32: elementwise operations refuse them
        common = max(left, right, key=lambda dtype: (dtypes.is_inexact(dtype), dtype.itemsize))
    return tuple(convert(x, common, get_aval(x).weak_type) for x in (lhs, rhs))


def _wider(left: np.dtype, right: np.dtype) -> np.dtype:
    """Of two dtypes the one of wider range: the result's, where none is asked for."""
    if left == right:
        return left

    def rank(dtype: np.dtype) -> tuple[Any, ...]:
        real = dtypes.finfo(dtype) if dtypes.is_inexact(dtype) else None
        extent = (real.maxexp, real.nmant) if real is not None else (-1, -1)
        return dtype.kind == "c", *extent, _bits(dtype), not dtypes.is_unsigned(dtype)

    if rank(left) == rank(right):
        raise TypeError(f"lax.dot_general argument type error: {left.name}, {right.name}")
    return max(left, right, key=rank)


def _bits(dtype: np.dtype) -> int:
    if dtype == np.bool_:
        return 1
    return int((dtypes.finfo if dtypes.is_inexact(dtype) else dtypes.iinfo)(dtype).bits)


def dot(lhs: Any, rhs: Any, *, dimension_numbers: DotDimensionNumbers | None = None,
        precision: PrecisionLike = None, preferred_element_type: Any = None) -> Array:  # fmt: skip
    """Products of vectors and matrices: the sum over the last axis of lhs and the first of rhs.

    lhs, rhs                arrays of rank 1 or 2; any rank with dimension_numbers.
    dimension_numbers       those of dot_general, which then does the work.
    precision               of float32 products: None, a lax.Precision or its name.
    preferred_element_type  the dtype of sum and result, by default that of the operands.

    Raises ValueError for other ranks and where the two sizes differ.

    >>> print(lax.dot(jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([1.0, 10.0])))
    [21. 43.]
    """
    if dimension_numbers is None:
        left, right = np.shape(lhs), np.shape(rhs)
        if not (1 <= len(left) <= 2 and 1 <= len(right) <= 2 and left[-1] == right[0]):
            raise ValueError(
                "lax.dot: dimension_numbers must be specified when not performing simple un-batched "
                "matrix-matrix, matrix-vector, or vector-vector products; got "
                f"lhs_shape={left} rhs_shape={right}"
            )
        dimension_numbers = (((len(left) - 1,), (0,)), ((), ()))
    return dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type)


def batch_matmul(lhs: Any, rhs: Any, precision: PrecisionLike = None) -> Array:
    """Matrix products over the last two axes, for each index of the leading axes.

    lhs        an array of shape (..., m, k).
    rhs        an array of shape (..., k, n); the leading sizes are lhs's, for nothing is broadcast.
    precision  of float32 products: None, a lax.Precision or its name.

    Raises TypeError where sizes differ.

    >>> lax.batch_matmul(jnp.ones((5, 2, 3)), jnp.ones((5, 3, 4))).shape
    (5, 2, 4)
    """
    n = len(np.shape(lhs))
    if n < 2 or len(np.shape(rhs)) != n:
        raise ValueError(
            "Arguments to batch_matmul must have the same rank of at least 2, got "
            f"{np.shape(lhs)} and {np.shape(rhs)}"
        )
    batch = tuple(range(n - 2))
    return dot_general(lhs, rhs, (((n - 1,), (n - 2,)), (batch, batch)), precision)


# ---- rules -------------------------------------------------------------------------------------
def _check_pairs(what: str, lhs: ShapedArray, rhs: ShapedArray, left: Axes, right: Axes) -> None:
    if len(left) != len(right):
        raise TypeError(
            f"[dot_general] needs as many {what} axes of lhs as of rhs, got {left} and {right}"
        )
    for a, b in zip(left, right):
        if lhs.shape[a] != rhs.shape[b]:
            raise TypeError(
                f"[dot_general] {what} sizes differ: lhs {lhs.str_short()} axis {a} is "
                f"{lhs.shape[a]}, rhs {rhs.str_short()} axis {b} is {rhs.shape[b]}"
            )


def _check_axes(side: str, aval: ShapedArray, contracting: Axes, batch: Axes) -> None:
    axes = (*contracting, *batch)
    if any(not 0 <= a < len(aval.shape) for a in axes):
        raise TypeError(f"[dot_general] {side} {aval.str_short()} has no axes "
                        f"{[a for a in axes if not 0 <= a < len(aval.shape)]}")  # fmt: skip
    if len(set(axes)) != len(axes):
        raise TypeError(
            f"[dot_general] an axis of {side} {aval.str_short()} is named twice: contracting "
            f"{contracting}, batch {batch}"
        )


def _free(ndim: int, *used: Axes) -> Axes:
    taken = {a for axes in used for a in axes}
    return tuple(i for i in range(ndim) if i not in taken)


def _abstract_eval(lhs: ShapedArray, rhs: ShapedArray, *, dimension_numbers: Any, precision: Any,
                   preferred_element_type: np.dtype | None) -> ShapedArray:  # fmt: skip
    return _product_type(lhs, rhs, dimension_numbers, preferred_element_type)


@functools.lru_cache(1024)
def _product_type(lhs: ShapedArray, rhs: ShapedArray, dimension_numbers: Any,
                  preferred_element_type: np.dtype | None) -> ShapedArray:  # fmt: skip
    (lc, rc), (lb, rb) = dimension_numbers
    _check_axes("lhs", lhs, lc, lb)
    _check_axes("rhs", rhs, rc, rb)
    _check_pairs("contracting", lhs, rhs, lc, rc)
    _check_pairs("batch", lhs, rhs, lb, rb)
    check_accepted("dot_general", ANY, lhs, 0)
    check_accepted("dot_general", ANY, rhs, 1)
    if preferred_element_type is None:
        check_same_dtypes("dot_general", (lhs, rhs))
        dtype = lhs.dtype
    else:
        dtype = preferred_element_type
    shape = (
        *(lhs.shape[i] for i in lb),
        *(lhs.shape[i] for i in _free(len(lhs.shape), lc, lb)),
        *(rhs.shape[i] for i in _free(len(rhs.shape), rc, rb)),
    )
    return ShapedArray(shape, dtype, lhs.weak_type and rhs.weak_type)


def _lowering(ctx: Any, lhs: Any, rhs: Any, *, dimension_numbers: Any, precision: Any,
              preferred_element_type: Any) -> Any:  # fmt: skip
    (lc, rc), (lb, rb) = dimension_numbers
    names = None if precision is None else tuple(p.name for p in precision)
    dtype = ctx.avals_out[0].dtype
    return hlo.dot_general(lhs, rhs, lb, rb, lc, rc, dtype, names)


def _jvp(primals: Any, tangents: Any, **params: Any) -> tuple[Any, Any]:
    (x, y), (gx, gy) = primals, tangents
    out = dot_general_p.bind(x, y, **params)
    parts = []
    if type(gx) is not Zero:
        parts.append(dot_general_p.bind(gx, y, **params))
    if type(gy) is not Zero:
        parts.append(dot_general_p.bind(x, gy, **params))
    if not dtypes.is_inexact(get_aval(out).dtype):
        return out, Zero(get_aval(out).to_tangent_aval())
    return out, parts[0] if len(parts) == 1 else lax.add_any(*parts)


def _cotangent(ct: Any, target: ShapedArray, other: Any, target_axes: tuple[Axes, Axes],
               other_axes: tuple[Axes, Axes], target_first: bool, precision: Any,
               preferred_element_type: Any) -> Any:  # fmt: skip
    """The product of ct with the known operand over the axes that come from that operand, with the
    axes put in the order of `target`. `*_axes` are (contracting, batch)."""
    numbers, permutation = _cotangent_axes(
        len(target.shape), len(get_aval(other).shape), target_axes, other_axes, target_first
    )
    out = dot_general_p.bind(
        ct, other,
        dimension_numbers=numbers,
        precision=precision, preferred_element_type=preferred_element_type,
    )  # fmt: skip
    placed = target.to_cotangent_aval().placed
    if placed is not None and placed.sums.unreduced and not placed.mesh.manual_axes:
        # Said of the product itself: of what is moved or converted afterwards, terms are not known.
        dims: list[Names] = [()] * len(permutation)
        for to, axis in enumerate(permutation):
            dims[axis] = placed.dims[to]
        out = lax.as_typed(out, get_aval(out).update(placed=placed.with_dims(tuple(dims))))
    return lax.convert_element_type(lax.transpose(out, permutation), target.dtype)


@functools.lru_cache(512)
def _cotangent_axes(ndim: int, other_ndim: int, target_axes: tuple[Axes, Axes],
                    other_axes: tuple[Axes, Axes], target_first: bool) -> tuple[Any, Axes]:  # fmt: skip
    """The dimension numbers of that product, and how its axes are put in order."""
    (contracting, batch), (other_contracting, other_batch) = target_axes, other_axes
    free = _free(ndim, contracting, batch)
    other_free = _free(other_ndim, other_contracting, other_batch)
    nb = len(batch)
    first = nb + (len(free) if target_first else 0)
    ct_other = tuple(range(first, first + len(other_free)))
    ct_batch = tuple(range(nb))
    # The result's axes: batch, free ones of target, then other's contracting axes in rising order.
    by_other = sorted(range(len(contracting)), key=other_contracting.__getitem__)
    axes = (*batch, *free, *(contracting[i] for i in by_other))
    numbers = ((ct_other, other_free), (ct_batch, other_batch))
    return numbers, tuple(sorted(range(len(axes)), key=axes.__getitem__))


def _transpose(ct: Any, x: Any, y: Any, *, dimension_numbers: Any, precision: Any,
               preferred_element_type: Any) -> list[Any]:  # fmt: skip
    (lc, rc), (lb, rb) = dimension_numbers
    if is_undefined_primal(x):
        swapped = None if precision is None else precision
        return [_cotangent(ct, x.aval, y, (lc, lb), (rc, rb), True, swapped,
                           preferred_element_type), None]  # fmt: skip
    swapped = None if precision is None else precision[::-1]
    return [None, _cotangent(ct, y.aval, x, (rc, rb), (lc, lb), False, swapped,
                             preferred_element_type)]  # fmt: skip


def _batching(args: Any, dims: Any, *, dimension_numbers: Any, **params: Any) -> tuple[Any, int]:
    (x, y), (dx, dy) = args, dims
    (lc, rc), (lb, rb) = dimension_numbers
    nb = len(lb)
    if dx is not None and dy is not None:
        numbers = ((past(dx, lc), past(dy, rc)), ((dx, *past(dx, lb)), (dy, *past(dy, rb))))
        return dot_general_p.bind(x, y, dimension_numbers=numbers, **params), 0
    if dx is not None:
        lc, lb = past(dx, lc), past(dx, lb)
        out_dim = nb + _free(len(x.shape), lc, lb).index(dx)
    else:
        rc, rb = past(dy, rc), past(dy, rb)
        left = len(np.shape(x)) - nb - len(lc)
        out_dim = nb + left + _free(len(y.shape), rc, rb).index(dy)
    return dot_general_p.bind(x, y, dimension_numbers=((lc, rc), (lb, rb)), **params), out_dim


def _placed(of: Operands, out: ShapedArray, *, dimension_numbers: Any, **_: Any) -> Dims:
    (lc, rc), (lb, rb) = dimension_numbers
    lhs, rhs = of.dims
    for left, right in zip(lb, rb):
        if lhs[left] and rhs[right] and lhs[left] != rhs[right]:
            raise ShardingTypeError(
                "dot_general requires lhs batch dimensions and rhs batch dimensions to have the same "
                f"sharding, got {spec(lhs)} and {spec(rhs)}"
            )
    for left, right in zip(lc, rc):
        if lhs[left] and rhs[right]:
            raise ShardingTypeError(
                "Contracting dimensions are sharded and it is ambiguous how the output should be sharded. Please "
                "specify the output sharding via the `out_sharding` parameter. Got lhs_contracting_spec="
                f"{spec((lhs[left],))} and rhs_contracting_spec={spec((rhs[right],))}"
            )
    batch = tuple(of.merged(lhs[left], rhs[right]) for left, right in zip(lb, rb))
    return batch + without(lhs, (*lc, *lb)) + without(rhs, (*rc, *rb))


def _sums(of: Operands, **_: Any) -> Sums:
    left, right = of.sums_of(0), of.sums_of(1)
    if left.unreduced or right.unreduced:
        raise ShardingTypeError(
            "lhs or rhs passed to dot_general cannot be unreduced: of terms of a sum a product needs all. Reshard "
            f"it first. Got {of.avals[0].str_short()} and {of.avals[1].str_short()}"
        )
    return sums(frozenset(), left.reduced | right.reduced)


dot_general_p: Primitive = Primitive(
    "dot_general",
    abstract_eval=_abstract_eval,
    placed=_placed,
    lowering=_lowering,
    jvp=_jvp,
    sums=_sums,
    transpose=_transpose,
    batching=_batching,
)
