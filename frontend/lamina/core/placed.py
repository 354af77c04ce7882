"""Shardings in types: how an array lies on a mesh with explicit axes, as its type says.

An array on a mesh some of whose axes are `AxisType.Explicit` has a `Placed` in its type, and what is computed
from it has one, too: each primitive's `placed` rule says which, from those of its operands. Where they
leave it open, or contradict each other, that is an error of the program, unless the program says
itself where the result is to lie (`out_sharding`). So is it with cotangents: each is to lie as the value
that it belongs to. Axes of other kinds are not in types: along them the partitioner spreads arrays.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lamina.records import Record

if TYPE_CHECKING:
    from lamina.core.avals import ShapedArray
    from lamina.core.manual_axes import UnreducedKind
    from lamina.core.primitive import Primitive

Names = tuple[Any, ...]
Dims = tuple[Names, ...]
"""For each dimension the mesh axes over which it is split, the last of which varies fastest."""


class ShardingTypeError(Exception):
    """The shardings of an operation's operands, which their types say, leave that of its result open."""


class Sums(Record):
    """What the devices along some axes of a mesh have of the same part of an array.

    unreduced  the axes along which each has a term.
    reduced    those along which all have the same, of whose cotangent each has a term.
    kind       what terms are combined by; None where there are none.
    """

    unreduced: frozenset[Any] = frozenset()
    reduced: frozenset[Any] = frozenset()
    kind: UnreducedKind | None = None


WHOLE: Sums = Sums()
"""All have the same, along every axis that splits nothing."""


def sums(
    unreduced: frozenset[Any], reduced: frozenset[Any], kind: UnreducedKind | None = None
) -> Sums:
    """WHOLE where there are no axes."""
    if not unreduced and not reduced:
        return WHOLE
    if unreduced and kind is None:
        from lamina.core.manual_axes import UnreducedKind

        kind = UnreducedKind.sum
    return Sums(unreduced, reduced, kind if unreduced else None)


class Placed(Record):
    """How the values of a type lie on a mesh.

    mesh  an AbstractMesh.
    dims  for each dimension the names of its axes.
    sums  what they are along axes that split nothing.
    """

    mesh: Any
    dims: Dims
    sums: Sums = WHOLE

    def with_dims(self, dims: Dims) -> Placed:
        """The same with other dimensions."""
        return Placed(self.mesh, dims, self.sums)

    def of_cotangent(self) -> Placed:
        """How the cotangents of such values lie: where all devices have the same that counts once (reduced),
        each has a term of the cotangent, and the other way round."""
        if self.sums is WHOLE:
            return self
        return Placed(self.mesh, self.dims, sums(self.sums.reduced, self.sums.unreduced))

    def parts(self, dim: int) -> int:
        """Into how many parts a dimension is split."""
        n = 1
        for name in self.dims[dim]:
            n *= self.mesh.shape[name]
        return n

    def check_divides(self, shape: Sequence[Any]) -> None:
        """Raises ValueError where a dimension is not split into equal parts."""
        for dim, n in enumerate(shape):
            if isinstance(n, int) and n % self.parts(dim):
                raise ValueError(
                    f"Sharding spec {spec(self.dims)} implies that array axis {dim} is partitioned {self.parts(dim)} "
                    f"times, but does not evenly divide the dimension size {n}. Got shape: {tuple(shape)}"
                )

    def shown(self, shape: Sequence[int]) -> str:
        """A shape as types print it: 8@x,2@(y,z)."""
        sizes = []
        for size, names in zip(shape, self.dims, strict=True):
            at = str(names[0]) if len(names) == 1 else f"({','.join(map(str, names))})"
            sizes.append(f"{size}@{at}" if names else str(size))
        return ",".join(sizes)


class _State(threading.local):
    undecided: bool = False
    terms_wanted: bool = False


_state = _State()


@contextmanager
def undecided(are: bool = True) -> Iterator[None]:
    """For a block, operations whose operands leave the sharding of the result open are no error: its type
    then says none. What computes under an `out_sharding`, and cotangents, are told theirs afterwards."""
    before, _state.undecided = _state.undecided, are or _state.undecided
    try:
        yield
    finally:
        _state.undecided = before


def is_undecided() -> int:
    """Whether that holds here (2 where terms are wanted); it belongs to the keys under which traces are remembered."""
    return 2 if _state.terms_wanted else int(_state.undecided)


@contextmanager
def terms_wanted(are: bool = True) -> Iterator[None]:
    """For a block, sums over dimensions that are split leave it open (`undecided`) whether devices keep their
    terms: a sharding that is said of the result afterwards tells."""
    before, _state.terms_wanted = _state.terms_wanted, are
    try:
        with undecided(are):
            yield
    finally:
        _state.terms_wanted = before


def reduced_over(operands: Operands, axes: Sequence[int]) -> Dims:
    """Of a reduction over these dimensions of the first operand."""
    dims = operands.dims[0]
    if _state.terms_wanted and any(dims[axis] for axis in axes):
        raise ShardingTypeError(f"{operands.name} over split dimensions of {spec(dims)}: of terms, or of their sum?")
    return without(dims, axes)


def spec(dims: Dims) -> str:
    """Dims as a PartitionSpec prints."""
    entries = [repr(names[0] if len(names) == 1 else names) if names else "None" for names in dims]
    return f"P({', '.join(entries)})"


def result_types(
    primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any], out: Any
) -> Any:
    """The types of a primitive's results with what they say of where these lie.

    Raises ShardingTypeError where the operands leave that open or are on different meshes,
    NotImplementedError where the primitive has no rule.
    """
    results = list(out) if primitive.multiple_results else [out]
    mesh = None
    for aval in avals:
        if aval.placed is not None:
            if mesh is not None and aval.placed.mesh != mesh:
                raise ShardingTypeError(
                    f"{primitive.name}: Mesh for all inputs should be equal. Got one mesh: {mesh} and another "
                    f"mesh: {aval.placed.mesh}"
                )
            mesh = aval.placed.mesh
    dims = [a.placed.dims if a.placed is not None else ((),) * a.ndim for a in avals]
    found = _dims_of_results(primitive, dims, avals, params, results)
    over = WHOLE
    if any(a.placed is not None and a.placed.sums is not WHOLE for a in avals):
        try:
            over = _sums_of_results(primitive, Operands(primitive.name, dims, avals), params)
        except (ShardingTypeError, NotImplementedError):
            assert mesh is not None
            if not _state.undecided or mesh.manual_axes:  # by hand, types say what values are
                raise
            found = [None] * len(results)
    typed = [
        a.update(placed=None if d is None else Placed(mesh, d, _beside(over, d)))
        for a, d in zip(results, found, strict=True)
    ]
    return typed if primitive.multiple_results else typed[0]


def _beside(over: Sums, dims: Dims) -> Sums:
    """Of axes that split nothing."""
    used = {n for names in dims for n in names}
    return sums(over.unreduced - used, over.reduced - used, over.kind) if used else over


def _sums_of_results(primitive: Primitive, operands: Operands, params: dict[str, Any]) -> Sums:
    if primitive.sums is not None:
        found: Sums = primitive.sums(operands, **params)
        return found
    from lamina.core.primitive import LINEAR

    every = range(len(operands.avals))
    return linear_in(*every)(operands) if primitive.jvp is LINEAR else no_sums(operands)


def linear_in(*positions: int) -> Callable[..., Sums]:
    """The `sums` rule of operations that are linear in these operands together: of terms of these they give
    terms of the result. What else they take are indices, or the like."""

    def rule(operands: Operands, **params: Any) -> Sums:
        terms = [operands.sums_of(i) for i in positions]
        if any(one.unreduced != terms[0].unreduced or one.kind != terms[0].kind for one in terms):
            sides = "lhs and rhs" if len(terms) == 2 else "operands"
            if len(terms) == 2 and not all(one.unreduced for one in terms):
                which = (
                    "lhs is unreduced while rhs is not"
                    if terms[0].unreduced
                    else "rhs is unreduced while lhs is not"
                )
                sides = f"{which}: {sides}"
            raise ShardingTypeError(
                f"{sides} to `{operands.name}` must be unreduced along the same mesh axes. Got "
                f"{', '.join(str(set(one.unreduced)) for one in terms)}: reshard an operand so that they are"
            )
        return sums(terms[0].unreduced, operands.reduced_alike(positions), terms[0].kind)

    return rule


def no_sums(operands: Operands, **params: Any) -> Sums:
    """The `sums` rule of operations that are not linear: they take no terms."""
    if any(operands.sums_of(i).unreduced for i in range(len(operands.avals))):
        raise NotImplementedError(
            f"unreduced rule for {operands.name} is not implemented: of terms of a sum it does not give those of "
            "its result. Reshard the operand first, so that the terms are summed"
        )
    return sums(frozenset(), operands.reduced_alike(range(len(operands.avals))))


def factors(operands: Operands, **params: Any) -> Sums:
    """The `sums` rule of products: of terms of one factor, where the other is the same for all of them."""
    left, right = operands.sums_of(0), operands.sums_of(1)
    if not left.unreduced and not right.unreduced:
        return no_sums(operands)
    terms, other, at = (left, right, 1) if left.unreduced else (right, left, 0)
    scales = is_undecided() and operands.avals[at].ndim == 0  # what a cotangent is multiplied by
    if other.unreduced or not (scales or terms.unreduced <= other.reduced):
        sides = ("RHS", "LHS") if left.unreduced else ("LHS", "RHS")
        raise ShardingTypeError(
            f"{operands.name}: {sides[0]} should be reduced along the same axes {sides[1]} is unreduced on. Got "
            f"{set(terms.unreduced)} unreduced, {set(other.reduced)} reduced"
        )
    rest = other.reduced - terms.unreduced
    return sums(terms.unreduced, rest | terms.reduced, terms.kind)


def _dims_of_results(
    primitive: Primitive,
    dims: Sequence[Dims],
    avals: Sequence[ShapedArray],
    params: dict[str, Any],
    results: Sequence[ShapedArray],
) -> Sequence[Dims | None]:
    rule: Callable[..., Any] | None = primitive.placed
    if not any(any(d) for d in dims):  # no operand is split
        return [((),) * a.ndim for a in results]
    try:
        if rule is None:
            rule = alike
        found = rule(Operands(primitive.name, dims, avals), *results, **params)
        found = [found] if isinstance(found, tuple) else list(found)
        for one in found:
            _check_once(primitive.name, one, dims)
    except (ShardingTypeError, NotImplementedError):
        if not _state.undecided:
            raise
        return [None] * len(results)
    return found


def _check_once(name: str, found: Dims, dims: Sequence[Dims]) -> None:
    used = [n for names in found for n in names]
    if len(set(used)) < len(used):
        raise ShardingTypeError(
            f"{name} operation with inputs: {', '.join(map(spec, dims))} produces an illegally sharded result: "
            f"{spec(found)}, in which a mesh axis splits two dimensions. Say how the result is to lie "
            "(out_sharding), or reshard an operand"
        )


class Operands(Record):
    """What a `placed` rule is given first: the operands of a primitive, as their types say that they lie."""

    name: str
    dims: Sequence[Dims]
    avals: Sequence[Any]

    def sums_of(self, operand: int) -> Sums:
        """What devices have of an operand."""
        placed = self.avals[operand].placed
        return WHOLE if placed is None else placed.sums

    def reduced_alike(self, positions: Sequence[int]) -> frozenset[Any]:
        """Along which axes these operands are reduced, all of them but for numbers."""
        arrays = [i for i in positions if self.avals[i].ndim or self.sums_of(i).reduced]
        found = frozenset[Any]().union(*(self.sums_of(i).reduced for i in arrays))
        for i in arrays:
            missing = found - self.sums_of(i).reduced - self.sums_of(i).unreduced
            if not missing:
                continue
            split = {n for names in self.dims[i] for n in names} | self.avals[i].vma
            state = "sharded/varying" if missing & split else "replicated"
            raise ShardingTypeError(
                f"{self.name}: Inputs cannot be {state} on the same axes that another input is reduced on. Got "
                f"{', '.join(a.str_short() for a in self.avals)}: reshard one so that they are alike"
            )
        return found

    def merged(self, *columns: Names) -> Names:
        """Over what a dimension is split that several operands share."""
        found: Names = ()
        for names in columns:
            if names and found and names != found:
                raise ShardingTypeError(
                    f"{self.name} got incompatible shardings for broadcasting: "
                    f"{', '.join(map(spec, self.dims))}. Reshard an operand so that all are split alike"
                )
            found = found or names
        return found

    def whole(self, operand: int, dim: int, what: str) -> None:
        """Raises ShardingTypeError where an operand is split along a dimension."""
        if self.dims[operand][dim]:
            raise ShardingTypeError(
                f"{self.name}: {what} over a sharded dimension is ambiguous: dimension {dim} of an operand "
                f"under {spec(self.dims[operand])}. Reshard it so that this dimension is not split, or say how "
                "the result is to lie (out_sharding)"
            )


def alike(operands: Operands, *results: ShapedArray, **params: Any) -> Any:
    """The rule of elementwise operations, and where a primitive names none: results lie as the operands of
    their shape do, which are split alike."""
    found = []
    for result in results:
        columns: list[list[Names]] = [[] for _ in result.shape]
        for dims, aval in zip(operands.dims, operands.avals, strict=True):
            if aval.ndim == 0:
                continue
            if aval.ndim != result.ndim or any(
                n not in (1, m) for n, m in zip(aval.shape, result.shape, strict=True)
            ):
                raise NotImplementedError(
                    f"sharding rule for {operands.name} is not implemented: what it gives of operands under "
                    f"{', '.join(map(spec, operands.dims))} is known where it runs in auto_axes(..., out_sharding=...)"
                )
            for column, names in zip(columns, dims, strict=True):
                column.append(names)
        found.append(tuple(operands.merged(*column) for column in columns))
    return found


def first(operands: Operands, *results: ShapedArray, **params: Any) -> Any:
    """The rule of operations that leave their first operand's dimensions what they are."""
    return [operands.dims[0] for _ in results]


def without(dims: Dims, axes: Sequence[int]) -> Dims:
    """Of the dimensions that are left when these are gone."""
    return tuple(names for d, names in enumerate(dims) if d not in axes)


def check_unsplit(name: str, x: ShapedArray, dims: Iterable[int], message: str) -> None:
    """Raises ShardingTypeError with the message where values of a type are split along one of these dimensions."""
    placed = x.placed
    if placed is not None and not _state.undecided and any(placed.dims[dim] for dim in dims):
        raise ShardingTypeError(f"{name}: {message}. Got {spec(placed.dims)}: reshard it first")


def of_batches(*ranks: int) -> Callable[..., list[Dims]]:
    """The rule of operations on each of a batch of matrices: the dimensions before these `ranks` of the operands are
    split alike, and so are the results'; the others are whole."""

    def rule(operands: Operands, *results: ShapedArray, **params: Any) -> list[Dims]:
        columns: list[Dims] = []
        for i, (dims, rank) in enumerate(zip(operands.dims, ranks, strict=True)):
            batch = len(dims) - rank
            for dim in range(batch, len(dims)):
                operands.whole(i, dim, "what it does to a matrix or vector")
            columns.append(dims[:batch])
        merged = tuple(operands.merged(*column) for column in zip(*columns, strict=True))
        return [merged + ((),) * (result.ndim - len(merged)) for result in results]

    return rule


_DONE = {"slice": "slicing", "pad": "padding"}


def if_divided(operands: Operands, out: ShapedArray, **params: Any) -> Dims:
    """The rule of operations that make dimensions of the first operand longer or shorter, where their parts
    on devices stay equal."""
    x = operands.avals[0]
    if operands.dims[0] and all(n == 1 for n in out.shape):  # of one element
        return ((),) * out.ndim
    for dim, (before, after, names) in enumerate(zip(x.shape, out.shape, operands.dims[0])):
        if names and before != after and after % x.placed.parts(dim):
            raise ShardingTypeError(
                f"{_DONE.get(operands.name, operands.name)} on sharded dims where out dim ({after}) is not divisible "
                f"by mesh axes ({x.placed.parts(dim)}) with spec {spec(operands.dims[0])} is not implemented. Reshard "
                "the operand so that this dimension is not split"
            )
    return operands.dims[0]
