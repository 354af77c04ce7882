"""conv_general_dilated: convolutions of any rank, with strides, padding, dilation and groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from lamina import lax
from lamina.core import Primitive, ShapedArray, dtypes, get_aval
from lamina.core.array_class import Array
from lamina.core.placed import Dims, Operands, ShardingTypeError, spec, undecided
from lamina.lax import convolution_rules, hlo
from lamina.lax.checks import NUMBER, check_accepted, check_reach, check_same_dtypes, static_ints
from lamina.lax.conv_layouts import (
    ConvDimensionNumbers,
    ConvGeneralDilatedDimensionNumbers,
    conv_dimension_numbers,
)
from lamina.lax.dot_general import PrecisionLike, canonical_precision
from lamina.lax.window_padding import Pads, dilated, padtype_to_pads, transposed_pads


# ---- user functions ----------------------------------------------------------------------------
def conv_general_dilated(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: str | Pads,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """The sum of products of a kernel with each window of lhs: a convolution as of neural networks,
    which does not flip the kernel.

    lhs                     an array of rank n + 2: batch, features and n axes of space.
    rhs                     the kernel, of the same dtype and rank: out features, in features,
                            window.
    window_strides          how far the window moves, an int for each axis of space.
    padding                 "SAME", "VALID", "SAME_LOWER" or a (low, high) pair for each axis of
                            space.
    lhs_dilation            spreads lhs by putting zeros between its elements; None: ones.
    rhs_dilation            spreads the window likewise ("atrous"); None: ones.
    dimension_numbers       where these axes are, as conv_dimension_numbers takes them; None: batch
                            and features first (NCHW, OIHW, NCHW).
    feature_group_count     divides in and out features into groups that do not mix; as many as
                            there are in features: a depthwise convolution.
    batch_group_count       divides the batch into groups, each with its part of the out features.
    precision               of float32 products: None, a lax.Precision or its name.
    preferred_element_type  the dtype of sum and result, by default that of the operands.
    out_sharding            how the result lies on devices, a sharding or None.

    Raises ValueError where features do not fit or padding has an unknown name; TypeError where
    dtypes differ or there is not one stride for each axis of space.

    >>> image = jnp.arange(9.0).reshape(1, 1, 3, 3)
    >>> print(lax.conv_general_dilated(image, jnp.ones((1, 1, 2, 2)), (1, 1), "VALID")[0, 0])
    [[ 8. 12.]
     [20. 24.]]
    """
    numbers = conv_dimension_numbers(np.shape(lhs), np.shape(rhs), dimension_numbers)
    preferred = None
    if preferred_element_type is not None:
        preferred = dtypes.canonicalize(preferred_element_type)
        _check_preferred(get_aval(lhs).dtype, preferred)
    of_bools = get_aval(lhs).dtype == np.bool_ == get_aval(rhs).dtype
    if of_bools:
        # The sum of products is "or" of "and", or a count in the dtype asked for.
        lhs, rhs = (lax.convert_element_type(x, preferred or np.int32) for x in (lhs, rhs))
    n = len(numbers.lhs_spec) - 2
    strides = static_ints("conv_general_dilated", "window_strides", window_strides)
    if any(s < 1 for s in strides):
        raise ValueError(f"[conv_general_dilated] window_strides must be positive, got {strides}")
    left = _per_axis("lhs_dilation", lhs_dilation, n)
    right = _per_axis("rhs_dilation", rhs_dilation, n)
    if not isinstance(padding, str) and not _is_pairs(padding):
        raise ValueError(
            "padding argument to conv_general_dilated should be a string or a sequence of (low, high) pairs, "
            f"got {padding}"
        )
    if isinstance(padding, str):
        sizes = [np.shape(lhs)[d] for d in numbers.lhs_spec[2:]]
        window = [dilated(np.shape(rhs)[d], r) for d, r in zip(numbers.rhs_spec[2:], right)]
        padding = padtype_to_pads([dilated(s, r) for s, r in zip(sizes, left)], window, strides,
                                  padding)  # fmt: skip
    with undecided(out_sharding is not None):
        out = conv_general_dilated_p.bind(
            lhs,
            rhs,
            window_strides=strides,
            padding=tuple((int(low), int(high)) for low, high in padding),
            lhs_dilation=left,
            rhs_dilation=right,
            dimension_numbers=numbers,
            feature_group_count=int(feature_group_count),
            batch_group_count=int(batch_group_count),
            precision=canonical_precision(precision),
            preferred_element_type=preferred,
        )
    if of_bools and preferred is None:
        out = lax.convert_element_type(out, np.bool_)
    return out if out_sharding is None else lax.under(out, out_sharding)


def _check_preferred(have: np.dtype, preferred: np.dtype) -> None:
    """Raises TypeError unless sums of products of `have` can be had in another dtype."""
    fits = (
        preferred.kind == "c"
        if have.kind == "c"
        else dtypes.is_float(preferred)
        if dtypes.is_float(have)
        else dtypes.is_float(preferred)
        or (
            dtypes.is_integer(preferred)
            and dtypes.is_unsigned(preferred) <= dtypes.is_unsigned(have)
        )
    )
    if not fits or preferred.itemsize < have.itemsize:
        raise TypeError(
            "[conv_general_dilated] `preferred_element_type` must be at least as wide and of the same "
            f"kind as the operands' dtype (or floating for integers), got {preferred.name} for "
            f"{have.name}"
        )


def _is_pairs(padding: Any) -> bool:
    return isinstance(padding, Iterable) and all(np.shape(pair) == (2,) for pair in padding)


def conv(lhs: Any, rhs: Any, window_strides: Sequence[int], padding: str | Pads,
         precision: PrecisionLike = None, preferred_element_type: Any = None) -> Array:  # fmt: skip
    """conv_general_dilated without dilation or groups, batch and features first.

    lhs                     an array of shape (batch, in features, *space).
    rhs                     the kernel, (out features, in features, *window).
    window_strides          an int for each axis of space.
    padding                 "SAME", "VALID", "SAME_LOWER" or a (low, high) pair for each axis of
                            space.
    precision               of float32 products: None, a lax.Precision or its name.
    preferred_element_type  the dtype of sum and result, by default that of the operands.

    Raises what conv_general_dilated raises.

    >>> print(lax.conv(jnp.array([[[1.0, 2.0, 3.0]]]), jnp.array([[[1.0, 10.0]]]), (1,), "VALID"))
    [[[21. 32.]]]
    """
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, precision=precision,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip


def conv_with_general_padding(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: str | Pads,
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
) -> Array:
    """conv_general_dilated without groups, batch and features first.

    lhs                     an array of shape (batch, in features, *space).
    rhs                     the kernel, (out features, in features, *window).
    window_strides          an int for each axis of space.
    padding                 "SAME", "VALID", "SAME_LOWER" or a (low, high) pair for each axis of
                            space.
    lhs_dilation            how far lhs is spread along each axis of space, or None.
    rhs_dilation            how far the window is spread along each axis of space, or None.
    precision               of float32 products: None, a lax.Precision or its name.
    preferred_element_type  the dtype of sum and result, by default that of the operands.

    Raises what conv_general_dilated raises.

    >>> x, kernel = jnp.array([[[1.0, 2.0, 3.0]]]), jnp.array([[[1.0, 10.0]]])
    >>> print(lax.conv_with_general_padding(x, kernel, (1,), [(1, 0)], None, None))
    [[[10. 21. 32.]]]
    """
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, precision=precision,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip


def conv_transpose(
    lhs: Any,
    rhs: Any,
    strides: Sequence[int],
    padding: str | Pads,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    transpose_kernel: bool = False,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
    use_consistent_padding: bool = False,
) -> Array:
    """The convolution that upsamples by `strides`: with transpose_kernel it is the transpose of a
    strided convolution with this padding ("deconvolution").

    lhs                     an array of rank n + 2, by default (batch, *space, features).
    rhs                     the kernel, by default (*window, in features, out features).
    strides                 an int for each axis of space.
    padding                 "SAME", "VALID", or a (low, high) pair for each axis of space.
    rhs_dilation            how far the window is spread along each axis of space; None: ones.
    dimension_numbers       as conv_dimension_numbers takes them; None: NHWC, HWIO, NHWC.
    transpose_kernel        flips the kernel and exchanges its in and out features.
    precision               of float32 products: None, a lax.Precision or its name.
    preferred_element_type  the dtype of sum and result, by default that of the operands.
    use_consistent_padding  pairs of padding are those of the strided convolution that this is the
                            transpose of; otherwise those of the convolution that is run.

    Raises what conv_general_dilated raises.

    >>> x = jnp.array([1.0, 2.0]).reshape(1, 2, 1)
    >>> print(lax.conv_transpose(x, jnp.array([1.0, 10.0]).reshape(2, 1, 1), (2,), "SAME")[0, :, 0])
    [10.  1. 20.  2.]
    """
    rank = len(np.shape(lhs))
    if dimension_numbers is None:
        space = "HWDTUVXYZ"[: rank - 2]
        dimension_numbers = (f"N{space}C", f"{space}IO", f"N{space}C")
    numbers = conv_dimension_numbers(np.shape(lhs), np.shape(rhs), dimension_numbers)
    right = _per_axis("rhs_dilation", rhs_dilation, rank - 2)
    window = [dilated(np.shape(rhs)[d], r) for d, r in zip(numbers.rhs_spec[2:], right)]
    if use_consistent_padding and not isinstance(padding, str):
        padding = [(k - 1 - low, k - 1 - high) for k, (low, high) in zip(window, padding)]
    if isinstance(padding, str):
        padding = [transposed_pads(k, s, padding) for k, s in zip(window, strides)]
    if transpose_kernel:
        rhs = lax.rev(rhs, numbers.rhs_spec[2:])
        out, into, *rest = numbers.rhs_spec
        numbers = numbers._replace(rhs_spec=(into, out, *rest))
    return conv_general_dilated(
        lhs, rhs, (1,) * (rank - 2), padding, strides, right, numbers, precision=precision,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip


def _per_axis(what: str, values: Sequence[int] | None, n: int) -> tuple[int, ...]:
    if values is None:
        return (1,) * n
    return static_ints("conv_general_dilated", what, values)


# ---- type and lowering -------------------------------------------------------------------------
def _check_groups(lhs: ShapedArray, rhs: ShapedArray, numbers: ConvDimensionNumbers, features: int,
                  batches: int) -> None:  # fmt: skip
    def refuse(why: str) -> None:
        raise ValueError(
            f"[conv_general_dilated] {why}: lhs {lhs.str_short()}, rhs {rhs.str_short()}, "
            f"feature_group_count={features}, batch_group_count={batches}, {numbers}"
        )

    batch, channels = (lhs.shape[d] for d in numbers.lhs_spec[:2])
    out, into = (rhs.shape[d] for d in numbers.rhs_spec[:2])
    if features < 1 or batches < 1 or features > 1 and batches > 1:
        refuse("group counts must be positive, and one of them 1")
    if channels != into * features:
        refuse(f"lhs has {channels} features and rhs takes {into} in each of {features} groups")
    if out % features or out % batches:
        refuse(f"the {out} out features of rhs must be a multiple of the group count")
    if batch % batches:
        refuse(f"the batch of lhs, {batch}, must be a multiple of batch_group_count")


def _abstract_eval(lhs: ShapedArray, rhs: ShapedArray, *, window_strides: tuple[int, ...],
                   padding: tuple[tuple[int, int], ...], lhs_dilation: tuple[int, ...],
                   rhs_dilation: tuple[int, ...], dimension_numbers: ConvDimensionNumbers,
                   feature_group_count: int, batch_group_count: int,
                   preferred_element_type: np.dtype | None, **_: Any) -> ShapedArray:  # fmt: skip
    numbers = dimension_numbers
    n = len(lhs.shape) - 2
    if len(rhs.shape) != n + 2 or any(len(spec) != n + 2 for spec in numbers):
        raise TypeError(
            f"[conv_general_dilated] lhs {lhs.str_short()}, rhs {rhs.str_short()} and {numbers} "
            "must have one rank"
        )
    for what, values in (
        ("window_strides", window_strides),
        ("padding", padding),
        ("lhs_dilation", lhs_dilation),
        ("rhs_dilation", rhs_dilation),
    ):
        if len(values) != n:
            raise ValueError(
                f"[conv_general_dilated] {what} needs an entry for each of {n} axes of space, got "
                f"{values}"
            )
    if any(v < 1 for v in (*window_strides, *lhs_dilation, *rhs_dilation)):
        raise TypeError("[conv_general_dilated] strides and dilations must be positive, got "
                        f"{window_strides}, {lhs_dilation} and {rhs_dilation}")  # fmt: skip
    check_accepted("conv_general_dilated", NUMBER, lhs, 0)
    check_same_dtypes("conv_general_dilated", (lhs, rhs))
    _check_groups(lhs, rhs, numbers, feature_group_count, batch_group_count)
    sizes = [lhs.shape[numbers.lhs_spec[0]] // batch_group_count, rhs.shape[numbers.rhs_spec[0]]]
    for i in range(n):
        spread = dilated(lhs.shape[numbers.lhs_spec[i + 2]], lhs_dilation[i])
        window = dilated(rhs.shape[numbers.rhs_spec[i + 2]], rhs_dilation[i])
        steps = window_strides[i], lhs_dilation[i], rhs_dilation[i]
        check_reach("conv_general_dilated", spread, window, *padding[i], *steps)
        padded = spread + sum(padding[i])
        sizes.append(max(0, (padded - window) // window_strides[i] + 1))
    shape = [0] * (n + 2)
    for d, size in zip(numbers.out_spec, sizes):
        shape[d] = size
    dtype = lhs.dtype if preferred_element_type is None else preferred_element_type
    return ShapedArray(tuple(shape), dtype, lhs.weak_type and rhs.weak_type)


def _lowering(ctx: Any, lhs: Any, rhs: Any, *, window_strides: Any, padding: Any,
              lhs_dilation: Any, rhs_dilation: Any, dimension_numbers: ConvDimensionNumbers,
              feature_group_count: int, batch_group_count: int, precision: Any,
              preferred_element_type: Any) -> Any:  # fmt: skip
    numbers, out = dimension_numbers, ctx.avals_out[0]
    return hlo.convolution(
        lhs, rhs, out.shape, out.dtype,
        dimension_numbers=hlo.convolution_dimensions(*numbers),
        window_strides=window_strides, padding=padding, lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation, feature_group_count=feature_group_count,
        batch_group_count=batch_group_count,
        precision=None if precision is None else tuple(p.name for p in precision),
    )  # fmt: skip


def _placed(
    of: Operands, out: ShapedArray, *, dimension_numbers: ConvDimensionNumbers, batch_group_count: int, **_: Any
) -> Dims:
    lhs, rhs, numbers = *of.dims, dimension_numbers
    split = [lhs[numbers.lhs_spec[1]]] + [rhs[d] for d in numbers.rhs_spec[1:]]
    if any(split) or batch_group_count > 1:
        raise ShardingTypeError(
            "conv_general_dilated: only the batch and the axes of space of the left operand, and the output features "
            f"of the right one, can be sharded, got {spec(lhs)} and {spec(rhs)}. Say how the result is to lie "
            "(out_sharding)"
        )
    found: list[Any] = [()] * out.ndim
    found[numbers.out_spec[0]] = lhs[numbers.lhs_spec[0]]
    found[numbers.out_spec[1]] = rhs[numbers.rhs_spec[0]]
    for d, to in zip(numbers.lhs_spec[2:], numbers.out_spec[2:], strict=True):
        if lhs[d]:
            parts = of.avals[0].placed.parts(d)
            if out.shape[to] % parts:
                raise ShardingTypeError(
                    f"conv_general_dilated: dimension {d} of the left operand lies over {lhs[d]}, but the result has "
                    f"{out.shape[to]} elements there, which {parts} devices can't share. Reshard it first"
                )
            found[to] = lhs[d]
    return tuple(found)


conv_general_dilated_p: Primitive = Primitive(
    "conv_general_dilated",
    abstract_eval=_abstract_eval,
    placed=_placed,
    lowering=_lowering,
    jvp=convolution_rules.jvp,
    transpose=convolution_rules.transpose,
    batching=convolution_rules.batching,
)
