"""Which ops do the same to each of many small matrices, so that vector lanes can hold one each.

Besides factorisations and triangular systems, whose work pays for a kernel of lanes, there are the
ops between them: rows taken in the order of a permutation, and the permutation that undoes one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from math import prod

from lamina.dialects.attributes import LIBRARY
from lamina.dialects.constants import is_splat
from lamina.dialects.vendors import ir, stablehlo_ext
from lamina.passes.stablehlo.analysis.facts import CONSTANT, defining, made_by
from lamina.passes.stablehlo.analysis.lapack import TARGET
from lamina.records import Record

SMALL_MATRICES = "lamina.small_matrices"
"""What the kernels that hold such ops name as their library."""

MOST = 32  # rounding
"""Rows or columns of a matrix that is small."""
LEAST_BATCH = 4  # rounding
"""Matrices that keep vector lanes busy: LAPACK takes about as long for three as lanes for sixteen."""

_ELEMENTS = ("f32", "f64", "complex<f32>", "complex<f64>")
_ROUTINES = frozenset(("getrf", "geqrf", "orgqr"))


class SmallMatrices(Record):
    """An op on small matrices: `getrf`, `potrf`, `trsm`, `geqrf`, `orgqr`, `rows` (of matrices, in
    the order of permutations) or `inverse` (of permutations)."""

    routine: str
    batch: int
    operands: tuple[ir.Value, ...]
    """Arrays of the batch that it reads."""
    element: str = ""
    """Of the matrices; nothing for `inverse`."""
    views: tuple[ir.Operation, ...] = field(default=(), compare=False)
    """Ops between operands and op that only say how they lie, in order."""

    @property
    def is_worth_a_kernel(self) -> bool:
        """Whether it computes enough for a kernel of its own."""
        return self.routine not in ("rows", "inverse")

    @classmethod
    def of(cls, op: ir.Operation) -> SmallMatrices | None:
        """What an op does to small matrices; None if it is another op, or they are too large or
        too few."""
        if op.name == "stablehlo.custom_call":
            target = ir.StringAttr(op.attributes["call_target_name"]).value
            routine = target.removeprefix(TARGET)
            if not target.startswith(TARGET) or routine not in _ROUTINES:
                return None
            return _of_matrices(routine, op)
        if op.name == "stablehlo.cholesky":
            return _of_matrices("potrf", op)
        if op.name == "stablehlo.triangular_solve":
            return _of_matrices("trsm", op)
        if op.name == "stablehlo.gather":
            return _rows(op)
        return _inverse(op) if op.name == "stablehlo.sort" else None


def _of_matrices(routine: str, op: ir.Operation) -> SmallMatrices | None:
    shapes = [list(value.type.shape) for value in op.operands]
    element = str(op.operands[0].type.element_type)
    batch = prod(shapes[0][:-2])
    sizes = [size for shape in shapes[: 2 if routine == "trsm" else 1] for size in shape[-2:]]
    if element not in _ELEMENTS or batch < LEAST_BATCH:
        return None
    if min(sizes) < 1 or max(sizes) > MOST:
        return None
    views = []
    for value in op.operands:
        constant = made_by(value, CONSTANT)
        if constant is not None and is_splat(constant):
            views.append(constant)
    read = tuple(value for value in op.operands if defining(value) not in views)
    return SmallMatrices(routine, batch, read, element, tuple(views))


def _rows(op: ir.Operation) -> SmallMatrices | None:
    x, indices = op.operands
    shape = list(x.type.shape)
    element = str(x.type.element_type)
    if len(shape) < 3 or element not in _ELEMENTS or list(op.results[0].type.shape) != shape:
        return None
    if not 1 <= min(shape[-2:]) <= max(shape[-2:]) <= MOST or prod(shape[:-2]) < LEAST_BATCH:
        return None
    rank = len(shape)
    batch, row, column = list(range(rank - 2)), rank - 2, rank - 1
    numbers = stablehlo_ext.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    found = (
        list(numbers.offset_dims), list(numbers.operand_batching_dims),
        list(numbers.start_indices_batching_dims), numbers.index_vector_dim,
        list(op.attributes["slice_sizes"])[-1],
    )  # fmt: skip
    by_element: tuple[object, ...] = ([], [*batch, column], [*batch, column], rank, 1)
    by_row = ([column], batch, batch, rank - 1, shape[-1])
    if found not in (by_element, by_row) or list(numbers.start_index_map) != [row]:
        return None
    if list(numbers.collapsed_slice_dims) != [row]:
        return None
    views: list[ir.Operation] = []
    while list(indices.type.shape) != shape[:-1]:
        view = defining(indices)
        if view is None or not _repeats_at_end(view):
            return None
        views.insert(0, view)
        indices = view.operands[0]
    if str(indices.type.element_type) != "i32":
        return None
    return SmallMatrices("rows", prod(shape[:-2]), (x, indices), element, tuple(views))


def _repeats_at_end(op: ir.Operation) -> bool:
    """Whether an op gives an array dimensions behind its own."""
    if op.name not in ("stablehlo.reshape", "stablehlo.broadcast_in_dim"):
        return False
    before, after = list(op.operands[0].type.shape), list(op.results[0].type.shape)
    if after[: len(before)] != before:
        return False
    if op.name == "stablehlo.reshape":
        return prod(after[len(before) :]) == 1
    return list(op.attributes["broadcast_dimensions"]) == list(range(len(before)))


def _inverse(op: ir.Operation) -> SmallMatrices | None:
    """A sort of a factorisation's permutation that takes the numbers of places along."""
    if len(op.operands) != 2:
        return None
    permutation, places = op.operands
    shape = list(permutation.type.shape)
    iota = made_by(places, "stablehlo.iota")
    if iota is None or str(permutation.type.element_type) != "i32" or len(shape) < 2:
        return None
    if ir.IntegerAttr(iota.attributes["iota_dimension"]).value != len(shape) - 1:
        return None
    if not _is_permutation(permutation) or next(iter(op.results[0].uses), None) is not None:
        return None
    if prod(shape[:-1]) < LEAST_BATCH or not 1 <= shape[-1] <= MOST or not _is_ascending(op):
        return None
    return SmallMatrices("inverse", prod(shape[:-1]), (permutation,), views=(iota,))


def _is_permutation(value: ir.Value) -> bool:
    """Also for an argument of a kernel: what makes one has looked before."""
    op = defining(value)
    if op is None:
        function = value.owner.owner.operation
        return LIBRARY in function.attributes
    if op.name != "stablehlo.custom_call" or ir.OpResult(value).result_number != 2:
        return False
    return ir.StringAttr(op.attributes["call_target_name"]).value == TARGET + "getrf"


def _is_ascending(sort: ir.Operation) -> bool:
    shape = list(sort.operands[0].type.shape)
    given = "dimension" in sort.attributes
    dimension = ir.IntegerAttr(sort.attributes["dimension"]).value if given else -1
    if dimension % len(shape) != len(shape) - 1:
        return False
    block = sort.regions[0].blocks[0]
    ops = [inner.operation for inner in block.operations]
    if len(ops) != 2 or ops[0].name != "stablehlo.compare":
        return False
    first = [block.arguments[0], block.arguments[1]]
    direction = str(ops[0].attributes["comparison_direction"])
    return list(ops[0].operands) == first and "LT" in direction


def numbers_of(values: Iterable[ir.Value], batch: int) -> int:
    """Elements that arrays of a batch have for each matrix, together."""
    return sum(prod(list(value.type.shape)) // batch for value in values)
