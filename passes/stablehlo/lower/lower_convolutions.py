"""Lower `stablehlo.convolution` to sums of products that skip what is zero by its place.

    y[b, h, w, o] += x[b, s*h + d*i, s*w + d*j, k] * k[i, j, k, o]     strides s, dilation d

reads the kernel's elements and the input's where they lie, however far apart: the gradient of a
convolution in steps to its kernel is one whose kernel is dilated, which upstream's lowering spreads
over an array of zeros. An input that is spread by zeros (`lhs_dilation`: a transposed convolution,
and the gradient of one in steps to its input) meets every other element of the kernel only, which
ones depends on where the window begins: each of these phases is a convolution of its own with every
other element of the kernel, that writes every other element of the result, where that lies. Groups are a dimension
of their own of all three; the input's edges are padded after that dimension was split off. A sum over
one input feature is none. Where each element of space meets one other, and an element-wise op makes a
factor, that stays apart as in `stablehlo-keep-factors`.

Leaves alone dynamic sizes, integers and complex numbers, operands of several element types, and an
input spread by zeros where the window also has steps or dilation.

example: test/passes/stablehlo/lower/lower_convolutions.mlir
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of
from lamina.dialects.vendors import arith, ir, tensor
from lamina.passes.framework.base import Pass
from lamina.passes.framework.find import find_ops
from lamina.passes.linalg.analysis.contract import contract
from lamina.passes.linalg.analysis.structure import make_copy, make_generic
from lamina.passes.stablehlo.analysis.convolution_numbers import (
    ConvolutionNumbers,
    Window,
    is_product,
)
from lamina.passes.stablehlo.analysis.facts import makes_a_factor
from lamina.records import Record

# What dimensions hold, besides the numbers of those of space.
_BATCH, _INPUT, _OUTPUT, _GROUP = "batch", "input", "output", "group"
_Role = str | int


class LowerConvolutions(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        for op in find_ops(module, "stablehlo.convolution"):
            numbers = ConvolutionNumbers.of(op)
            if _can_be_lowered(op, numbers):
                with ir.InsertionPoint(op), op.location:
                    op.result.replace_all_uses_with(_Lowering(op, numbers).emit())
                op.erase()
                self.count("lowered")


def _can_be_lowered(op: ir.Operation, numbers: ConvolutionNumbers) -> bool:
    types = [value.type for value in (*op.operands, op.result)]
    return (
        len({type_.element_type for type_ in types}) == 1
        and isinstance(types[0].element_type, ir.FloatType)
        and all(type_.has_static_shape for type_ in types)
        and all(w.spread == 1 or w.stride == w.dilation == 1 for w in numbers.windows)
    )


class _Phase(Record):
    """The results of one dimension of space that the same elements of the kernel make: every
    `step`th from `first` on, `results` of them, from every `step`th element of the kernel from
    `taken` on, `elements` of those. The input is padded by `low` elements, or cut by -low."""

    first: int
    step: int
    results: int
    taken: int
    elements: int
    low: int


class _Lowering:
    """One convolution, its operands with groups as a dimension of their own."""

    def __init__(self, op: ir.Operation, numbers: ConvolutionNumbers) -> None:
        lhs, rhs = op.operands
        space = range(len(numbers.windows))
        backwards = [numbers.rhs[2 + d] for d in space if numbers.windows[d].reversed]
        if backwards:
            rhs = hlo.reverse(rhs, backwards)
        self._type = op.result.type
        self._windows = numbers.windows
        self._out = _roles(numbers.out, [_BATCH, _OUTPUT, *space])
        self._shape = list(self._type.shape)
        groups = max(numbers.feature_groups, numbers.batch_groups)
        parted = _INPUT if numbers.feature_groups > 1 else _BATCH
        lhs_roles = _roles(numbers.lhs, [_BATCH, _INPUT, *space])
        rhs_roles = _roles(numbers.rhs, [_OUTPUT, _INPUT, *space])
        if groups > 1:
            self._out, self._shape = _parted(self._out, self._shape, _OUTPUT, groups)
            (lhs, lhs_roles), (rhs, rhs_roles) = (
                _part(lhs, lhs_roles, parted, groups), _part(rhs, rhs_roles, _OUTPUT, groups)
            )  # fmt: skip
        self._lhs, self._rhs = (lhs, lhs_roles), (rhs, rhs_roles)
        self._inputs = rhs.type.shape[rhs_roles.index(_INPUT)]
        self._keeps_factors = makes_a_factor(op) and self._inputs > 1 and is_product(op, numbers)

    def emit(self) -> ir.Value:
        """The result."""
        element = self._type.element_type
        kernel, roles = self._rhs
        phases = [
            list(_phases(window, kernel.type.shape[roles.index(d)], self._extent(d)))
            for d, window in enumerate(self._windows)
        ]
        zero = arith.ConstantOp(element, ir.FloatAttr.get(element, 0.0)).result
        result = tensor.EmptyOp(self._shape, element).result
        if self._keeps_factors:
            result = self._product()
        elif all(w.spread == 1 for w in self._windows):
            result = self._sums([part for (part,) in phases], make_copy(zero, result).result)
        else:
            if any(len(found) < w.spread for found, w in zip(phases, self._windows, strict=True)):
                result = make_copy(zero, result).result  # where nothing is added
            for parts in itertools.product(*phases):
                result = self._with_phase(parts, zero, result)
        return _with_extents(result, list(self._type.shape))

    def _extent(self, role: _Role) -> int:
        return self._shape[self._out.index(role)]

    def _with_phase(self, parts: Sequence[_Phase], zero: ir.Value, result: ir.Value) -> ir.Value:
        """The result with the elements of a phase written."""
        rank = len(self._shape)
        sizes, offsets, strides = list(self._shape), [0] * rank, [1] * rank
        for d, part in enumerate(parts):
            at = self._out.index(d)
            sizes[at], offsets[at], strides[at] = part.results, part.first, part.step
        element = self._type.element_type
        if result.owner.name == "tensor.empty":  # then the place of this is found for it
            place = tensor.EmptyOp(sizes, element).result
        else:
            of = ir.RankedTensorType.get(sizes, element)
            place = tensor.ExtractSliceOp(of, result, [], [], [], offsets, sizes, strides).result
        sums = self._sums(parts, make_copy(zero, place).result)
        return tensor.InsertSliceOp(sums, result, [], [], [], offsets, sizes, strides).result

    def _product(self) -> ir.Value:
        """The result of a convolution of which each element of space meets one other."""
        (lhs, lhs_roles), (rhs, rhs_roles) = self._lhs, self._rhs
        met = {d for d in range(len(self._windows)) if self._extent(d) == 1}  # summed over
        out = [role for role in self._out if role not in met]
        summed = [*(role for role in rhs_roles if role in met), _INPUT]
        at = {role: ir.AffineDimExpr.get(i) for i, role in enumerate([*out, *summed])}
        kernel = [role for role in rhs_roles if role in met or isinstance(role, str)]
        rhs = _without_space(rhs, [rhs.type.shape[rhs_roles.index(role)] for role in kernel])
        maps = [
            ir.AffineMap.get(len(at), 0, [at[role] for role in roles])
            for roles in (lhs_roles, kernel, out)
        ]
        sums = contract([lhs, rhs], maps, [self._extent(role) for role in out])
        if len(out) == len(self._out):
            return sums
        result = tensor.EmptyOp(self._shape, self._type.element_type).result
        rank = len(self._shape)
        return tensor.InsertSliceOp(sums, result, [], [], [], [0] * rank, self._shape, [1] * rank).result

    def _sums(self, parts: Sequence[_Phase], initial: ir.Value) -> ir.Value:
        """What one phase adds up."""
        lhs, lhs_roles = self._lhs
        rhs, rhs_roles = self._rhs
        steps = [(w.stride, w.dilation) if w.spread == 1 else (1, 1) for w in self._windows]
        lhs = _edged(lhs, lhs_roles, parts, steps)
        rhs = _taken(rhs, rhs_roles, parts)
        # Results are walked in their order, sums in the kernel's: of space, then features.
        kernel_space = [role for role in rhs_roles if isinstance(role, int)]
        rank = len(self._out) + len(kernel_space) + (self._inputs > 1)
        result_at = {role: ir.AffineDimExpr.get(i) for i, role in enumerate(self._out)}
        kernel_at = {
            role: ir.AffineDimExpr.get(len(self._out) + i) for i, role in enumerate(kernel_space)
        }
        only = ir.AffineConstantExpr.get(0)

        def place(role: _Role) -> ir.AffineExpr:
            if role == _INPUT:
                return ir.AffineDimExpr.get(rank - 1) if self._inputs > 1 else only
            if isinstance(role, str):
                return result_at[role]
            stride, dilation = steps[role]
            along, within = result_at[role], kernel_at[role]
            return (along * stride if stride > 1 else along) + (
                within * dilation if dilation > 1 else within
            )

        def of_kernel(role: _Role) -> ir.AffineExpr:
            return kernel_at[role] if isinstance(role, int) else place(role)

        maps = [
            ir.AffineMap.get(rank, 0, [place(role) for role in lhs_roles]),
            ir.AffineMap.get(rank, 0, [of_kernel(role) for role in rhs_roles]),
            ir.AffineMap.get(rank, 0, [result_at[role] for role in self._out]),
        ]
        reductions = [d >= len(self._out) for d in range(rank)]
        sums = make_generic([lhs, rhs], [initial], maps, reductions, [initial.type])
        element = self._type.element_type
        block = sums.regions[0].blocks.append(element, element, element)
        with ir.InsertionPoint(block):
            x, k, total = block.arguments
            total = arith.AddFOp(total, arith.MulFOp(x, k).result).result
            ir.Operation.create("linalg.yield", operands=[total])
        return sums.result


def _roles(dimensions: Sequence[int], roles: Sequence[_Role]) -> list[_Role]:
    """What each dimension holds, from where each role is."""
    at = dict(zip(dimensions, roles, strict=True))
    return [at[d] for d in range(len(dimensions))]


def _parted(
    roles: list[_Role], shape: Sequence[int], role: _Role, groups: int
) -> tuple[list[_Role], list[int]]:
    """Roles and shape with the groups of one dimension in front of it, or in its place where each
    has one element."""
    at = roles.index(role)
    if shape[at] == groups:
        return [*roles[:at], _GROUP, *roles[at + 1 :]], list(shape)
    return (
        [*roles[:at], _GROUP, *roles[at:]],
        [*shape[:at], groups, shape[at] // groups, *shape[at + 1 :]],
    )


def _part(
    value: ir.Value, roles: list[_Role], role: _Role, groups: int
) -> tuple[ir.Value, list[_Role]]:
    roles, shape = _parted(roles, value.type.shape, role, groups)
    return _with_extents(value, shape), roles


def _without_space(value: ir.Value, shape: list[int]) -> ir.Value:
    """A slice of all: a reshape would be merged with the sums, and what makes a factor with them."""
    whole = list(value.type.shape)
    if shape == whole:
        return value
    type_ = ir.RankedTensorType.get(shape, value.type.element_type)
    rank = len(whole)
    return tensor.ExtractSliceOp(type_, value, [], [], [], [0] * rank, whole, [1] * rank).result


def _with_extents(value: ir.Value, shape: list[int]) -> ir.Value:
    return value if list(value.type.shape) == shape else hlo.reshape(value, shape)


def _phases(window: Window, elements: int, results: int) -> Iterator[_Phase]:
    """The phases of one dimension of space that have elements and results."""
    step = window.spread
    for first in range(min(step, results)):
        # Result first + step * q sees kernel element t where first + step * q + t - low is a multiple.
        taken = (window.low - first) % step
        if taken < elements:
            low = -((first + taken - window.low) // step)
            yield _Phase(
                first, step, -((first - results) // step), taken, -((taken - elements) // step), low
            )


def _edged(
    lhs: ir.Value, roles: list[_Role], parts: Sequence[_Phase], steps: Sequence[tuple[int, int]]
) -> ir.Value:
    """The input with the zeros around it that a phase sees, from where its first window begins."""
    rank = len(roles)
    starts, low, high = [0] * rank, [0] * rank, [0] * rank
    for d, (part, (stride, dilation)) in enumerate(zip(parts, steps, strict=True)):
        at = roles.index(d)
        seen = (part.results - 1) * stride + (part.elements - 1) * dilation + 1
        starts[at], low[at] = max(0, -part.low), max(0, part.low)
        starts[at] = min(starts[at], lhs.type.shape[at])
        high[at] = max(0, seen - low[at] - (lhs.type.shape[at] - starts[at]))
    if any(starts):
        lhs = hlo.slice(lhs, starts, list(lhs.type.shape))
    if any(low) or any(high):
        zero = hlo.full(0, [], dtype_of(lhs.type))
        lhs = hlo.pad(lhs, zero, low, high, [0] * rank)
    return lhs


def _taken(rhs: ir.Value, roles: list[_Role], parts: Sequence[_Phase]) -> ir.Value:
    """The elements of the kernel that a phase takes."""
    starts, steps = [0] * len(roles), [1] * len(roles)
    for d, part in enumerate(parts):
        at = roles.index(d)
        starts[at], steps[at] = part.taken, part.step
    if not any(starts) and all(step == 1 for step in steps):
        return rhs
    return hlo.slice(rhs, starts, list(rhs.type.shape), steps)
