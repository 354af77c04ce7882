"""The reason that `stablehlo-fuse` records on each kernel: what it holds and where it stopped."""

from __future__ import annotations

from collections.abc import Sequence

from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.analysis.facts import ints
from lamina.passes.stablehlo.analysis.gemm import Gemm
from lamina.passes.stablehlo.analysis.lapack import Lapack
from lamina.passes.stablehlo.analysis.sort_order import SortOrder, TopK
from lamina.passes.stablehlo.fusion import fuse_ops
from lamina.passes.stablehlo.fusion.fuse_graph import Group
from lamina.passes.stablehlo.fusion.fuse_prologues import factor_of

_MAX_STOPS = 3  # search


def reason(group: Group, ops: Sequence[ir.Operation]) -> str:
    """`elementwise chain of 5; stopped at dot_general: a library call`."""
    members = [ops[position] for position, _ in group.members]
    text = _what(group, members)
    stops = group.stops
    if group.kind == "rows":  # what stopped a part of it is inside by now
        inside = {op.name for op in members}
        stops = {op: why for op, why in stops.items() if op not in inside}
    shown = list(stops.items())[:_MAX_STOPS]
    if shown:
        text += "; stopped at " + ", ".join(f"{_short(op)}: {why}" for op, why in shown)
        if len(stops) > _MAX_STOPS:
            text += f", and {len(stops) - _MAX_STOPS} more"
    return text


def _what(group: Group, members: list[ir.Operation]) -> str:
    if group.kind == "library":
        if members[0].name == "stablehlo.fft":
            return f"{group.library} does transforms of {ints(members[0], 'fft_length')}"
        if members[0].name == "stablehlo.custom_call" and Lapack.of(members[0]) is None:
            return f"a call of {group.library}"
        if members[0].name == "stablehlo.sort":
            order = SortOrder.of(members[0])
            assert order is not None
            rows = f"{order.outer * order.inner} rows of {order.length}"
            return f"{group.library} sorts {rows} by {len(order.keys)} of {len(order.widths)}"
        if members[0].name == "chlo.top_k":
            top = TopK.of(members[0])
            assert top is not None
            return f"{group.library} finds {top.count} of {top.length} in each of {top.rows} rows"
        routine = Lapack.of(members[0])
        if routine is not None:
            matrix = "x".join(map(str, list(members[0].operands[0].type.shape)[-2:]))
            batch = f" {routine.batch} times" if routine.batch > 1 else ""
            return f"{group.library} does {matrix}{batch}"
        if members[0].name != "stablehlo.dot_general":
            return f"{group.library} does {_short(members[0].name)}"
        gemm = Gemm.of(members[0])
        assert gemm is not None
        batch = f"{gemm.batch} batches of " if gemm.batch else ""
        return f"{group.library} does {batch}{gemm.m}x{gemm.k} by {gemm.k}x{gemm.n}"
    if group.kind == "update":
        return f"{_short(members[0].name)} in place"
    if len(members) == 1:
        return f"{_short(members[0].name)} alone"
    if group.kind == "input":
        reductions = sum(op.name == "stablehlo.reduce" for op in members)
        found = "1 reduction" if reductions == 1 else f"{reductions} reductions over one domain"
        return f"{found} with {len(members) - reductions} ops around"
    if group.kind == "rows":
        reductions = sum(op.name == "stablehlo.reduce" for op in members)
        return f"{reductions} reductions along rows with {len(members) - reductions} ops around"
    if group.kind == "output":
        root = next(op for op in members if not fuse_ops.joins_loops(op))
        before = sum(factor_of(place) is not None for _, place in group.members)
        after = len(members) - 1 - before
        named = [f"{count} ops {where}" for count, where in ((before, "before"), (after, "after")) if count]
        return f"{_short(root.name)} with {' and '.join(named)}"
    return f"elementwise chain of {len(members)}"


def _short(name: str) -> str:
    return name.split(".", 1)[-1]
