"""Which element-wise ops `stablehlo-fuse` computes in the kernel of the product, or the convolution, that
alone reads them.

A product that is blocked for a kernel of its own can make a factor panel by panel, in the cache of the
task that multiplies with it (`cpu-multiply-tiles`); so is a convolution that meets each place of its
input once. That pays where each element is made once, in tasks enough, and what makes it would not rather
follow a contraction or a reduction in a kernel of theirs. What a convolution pads it copies anyway, and
makes there (`linalg-tile-padded-copies`, `linalg-pad-around`).
Products of bf16 and f16 make their second factor so where rows are few (`cpu-dot-product-gemm` for bf16
on processors with tiles): what they do with many takes longer than to write it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from lamina.dialects.types import element_name
from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.analysis.convolution_numbers import ConvolutionNumbers, is_product
from lamina.passes.stablehlo.analysis.facts import DotNumbers, has_one_use
from lamina.passes.stablehlo.analysis.gemm import Gemm
from lamina.passes.stablehlo.fusion.fuse_graph import Group, Place, Places
from lamina.passes.stablehlo.fusion.fuse_ops import VIEWS, Seen

_FACTORS = (Place("left factor"), Place("right factor"))  # whose rows, and columns, are the result's
_TURNED = Place("right factor, turned")  # large, and of columns that are far from each other
_PADDED = Place("padded input")
_DOMAINS = frozenset(place.domain for place in (*_FACTORS, _TURNED, _PADDED))
_CONVOLUTION = "stablehlo.convolution"
_LEAST_PRODUCTS = 1 << 18  # shape
_MOST_OPS = 16  # code
_LEAST_ROWS, _LEAST_COLUMNS, _FEW_TASKS = 32, 64, 4  # shape
_MOST_ROWS = 1024  # memory: that a task may keep sums of
_MOST_WALKED = 32  # search
_TURNED_ELEMENTS = 1 << 20
_FAST_ENOUGH = "stablehlo.divide"
_NARROW = frozenset(("bf16", "f16"))
_MOST_NARROW_ROWS, _LEAST_NARROW_COLUMNS = 64, 512  # shape


class _Product(NamedTuple):
    """What a product's sizes say of its factors."""

    rows: int
    columns: int
    terms: int
    batch: int
    first: int
    """Which operand has the rows."""
    is_across: bool
    """Whether the other is not contiguous along the columns, and is not turned on the way."""
    is_turned: bool = False
    """Whether it is, and large."""


def place_of_factor(op: Seen, number: int) -> Place | None:
    """Where an operand of a product, or a convolution, is made in its kernel; None if it is read from memory."""
    if op.library:
        return None
    types = {element_name(value.type) for value in (*op.operands, *op.results)}
    if types & _NARROW:
        is_theirs = op.name != _CONVOLUTION and number == 1 and types <= {*_NARROW, "f32"}
        return _place_of_narrow_factor(op) if is_theirs else None
    if types not in ({"f32"}, {"f64"}):
        return None
    if op.name == _CONVOLUTION:
        numbers = ConvolutionNumbers.of(op.op)
        if number == 0 and _pads(numbers):
            return _PADDED
        product = _product_of_convolution(op.op, numbers)
    else:
        product = _product_of(op.op)
    if product is None or product.batch * product.rows * product.columns * product.terms < _LEAST_PRODUCTS:
        return None
    many = product.batch >= _FEW_TASKS
    if number == product.first:
        pays = product.rows >= _LEAST_ROWS or (many and product.rows > 1)
    else:
        pays = not product.is_across and 1 < product.rows <= _MOST_ROWS
        pays = pays and (product.columns >= _LEAST_COLUMNS or many)
    if not pays or product.columns < 16:
        return None
    if number == product.first:
        return _FACTORS[0]
    return _TURNED if product.is_turned else _FACTORS[1]


def _product_of(dot: ir.Operation) -> _Product | None:
    gemm = Gemm.of(dot)
    if gemm is None:
        return None
    is_turned = gemm.b.transposed and gemm.n * gemm.k > _TURNED_ELEMENTS
    return _Product(gemm.m, gemm.n, gemm.k, prod(gemm.batch), 0, False, is_turned)


def _product_of_convolution(op: ir.Operation, numbers: ConvolutionNumbers) -> _Product | None:
    """A convolution as a product whose columns lie next to each other in the result."""
    lhs, rhs, out = (value.type.shape for value in (*op.operands, op.result))
    if not is_product(op, numbers) or 0 in lhs or 0 in rhs:
        return None
    inner = max((d for d in range(len(out)) if out[d] > 1), default=0)
    role = numbers.out.index(inner)
    features = out[numbers.out[1]]
    places, terms = prod(out) // features, prod(rhs) // features
    if role == 1:  # the kernel's
        return _Product(places, features, terms, 1, 0, rhs[numbers.rhs[0]] != prod(rhs[numbers.rhs[0] :]))
    batch = 1 if role == 0 else out[numbers.out[0]]
    across = lhs[numbers.lhs[role]] != prod(lhs[numbers.lhs[role] :])
    return _Product(features, places // batch, terms, batch, 1, across)


def _pads(numbers: ConvolutionNumbers) -> bool:
    """Whether a convolution copies its input once, with what is around it."""
    windows = numbers.windows
    ends = [end for window in windows for end in (window.low, window.high)]
    return max(ends, default=0) > 0 <= min(ends) and all(window.spread == 1 for window in windows)


def _place_of_narrow_factor(op: Seen) -> Place | None:
    """The same of a second factor of bf16 or f16: where rows are so few that tasks pack what they multiply
    for themselves."""
    lhs, rhs = (operand.type for operand in op.op.operands)
    gemm = Gemm.of_types(lhs, rhs, DotNumbers.of(op.op))
    if gemm is None or gemm.batch or gemm.m * gemm.n * gemm.k < _LEAST_PRODUCTS:
        return None
    if not (1 < gemm.m <= _MOST_NARROW_ROWS and gemm.n >= _LEAST_NARROW_COLUMNS):
        return None
    return _TURNED if gemm.b.transposed else _FACTORS[1]


def refusal_of_prologue(op: Seen, group: Group, places: Places, block: Sequence[Seen]) -> str | None:
    """Why a group does not compute an op to make a factor; None if it does, or that isn't what it is for."""
    factors = {factor_of(place) for place in places} - {None}
    if not factors:
        return None
    is_spread = op.name == "stablehlo.broadcast_in_dim"
    if len(places) > 1 and not is_spread:  # which is nothing to do again
        return "a factor that is needed at other places, too"
    if not (op.elementwise or is_spread):
        return "not made with a factor"
    made = [member for member in group.members if factor_of(member[1]) in factors]
    if len(made) >= _MOST_OPS:
        return "too much makes a factor"
    if made:
        return None
    if any(block[position].name == _CONVOLUTION for position, _ in group.members):
        return _refusal_of_input(op, _FACTORS[0].domain not in factors, block)
    if _TURNED.domain in factors and _costs_much(op, block):
        return "takes longer where rows are far from each other"
    return "follows what is another kernel's" if _follows_another(op, block) else None


def factor_of(place: Place) -> str | None:
    """Which factor an op at a place makes, if any."""
    return place.domain if place.domain in _DOMAINS else None


def _refusal_of_input(op: Seen, only_cheap: bool, block: Sequence[Seen]) -> str | None:
    """Why an op does not make the input of a convolution. Of what is smaller, as the statistics of each
    channel, there is a kernel of its own in any case. Where windows overlap, elements are made again; and
    long steps on rows that are far from each other take longer than on an array."""
    size = prod(op.shape or ())
    work, seen = [op], 0
    while work:
        last = work.pop()
        if only_cheap and not last.cheap:
            return "follows what is costly"
        for value in last.operands:
            maker = None if value.maker is None else block[value.maker]
            if maker is None or prod(value.shape) < size:
                continue
            if maker.elementwise:
                work.append(maker)
                seen += 1
            elif not maker.joins_loops and not maker.stays_in_main and has_one_use(value.value):
                return "follows what is another kernel's"
        if seen > _MOST_WALKED:
            return "follows too much"
    return None


def _costs_much(op: Seen, block: Sequence[Seen]) -> bool:
    """Whether what makes an op of its size, element by element, has a costly step."""
    size = prod(op.shape or ())
    work, seen = [op], 0
    while work:
        last = work.pop()
        seen += 1
        if seen > _MOST_WALKED or not (last.cheap or last.name == _FAST_ENOUGH):
            return True
        makers = (block[v.maker] for v in last.operands if v.maker is not None and prod(v.shape) == size)
        work += [maker for maker in makers if maker.elementwise]
    return False


def _follows_another(op: Seen, block: Sequence[Seen]) -> bool:
    """Whether what makes an op begins with something that a kernel follows up element by element."""
    work, seen = [op], 0
    while work:
        for value in work.pop().operands:
            maker = None if value.maker is None else block[value.maker]
            if maker is None or maker.library:
                continue
            if not (maker.joins_loops or maker.name in VIEWS or maker.stays_in_main):
                return True
            work.append(maker)
            seen += 1
        if seen > _MOST_WALKED:
            return True
    return False
