"""Which orders of a nest's iterations give the results of one statement after the other.

Two statements may share loops where no iteration of these touches what another one writes: wherever one writes a
buffer that the other touches, each of the shared loops is the same index of it in both, so that an iteration keeps
to its own elements, or to its own block of them. The order of a reduction's terms stays, unless the statement says
that it is free.
"""

from __future__ import annotations

from collections.abc import Sequence

from lamina.passes.schedule.nest import Statement


def keep_apart(
    first: Statement,
    of_first: Sequence[int],
    second: Statement,
    of_second: Sequence[int],
    carried: int | None = None,
) -> bool:
    """Whether loops over these dimensions, one of each statement at a time, may be shared by the two.

    From the loop number `carried` on the second keeps its sums in registers, and writes them when that loop is over:
    what the first reads of their buffer inside is still what was there before.
    """
    for a in first.accesses:
        for b in second.accesses:
            if a.root != b.root or not (a.writes or b.writes):
                continue
            if a.buffer != b.buffer:
                return False  # two views of one buffer
            pairs = list(zip(of_first, of_second, strict=True))
            if carried is not None and b.writes and not a.writes:
                pairs = pairs[:carried]
            if not all(a.indices_of(x) & b.indices_of(y) for x, y in pairs):
                return False
    return True


def may_reorder(statement: Statement, order: Sequence[int]) -> bool:
    """Whether a statement's loops may be nested so: it must touch what it writes at its own position only, and
    reductions keep their order unless they are free."""
    order = [dimension for dimension in order if statement.extents[dimension] > 1]
    reduced = [dimension for dimension in order if statement.reductions[dimension]]
    if reduced != sorted(reduced) and not statement.associative:
        return False
    return order == sorted(order) or not overlaps_itself(statement)


def overlaps_itself(statement: Statement) -> bool:
    """Whether a position may touch what another position writes, but for the sums of a reduction."""
    written = [access for access in statement.accesses if access.writes]
    for write in written:
        for other in statement.accesses:
            if other.root != write.root or other == write:
                continue
            alike = other.buffer == write.buffer and other.places == write.places and -1 not in write.places
            if not alike or other.computed or any(statement.reductions):
                return True
    return False
