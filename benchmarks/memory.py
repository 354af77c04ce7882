"""The memory that programs need besides arguments and results, by each compiler's own analysis.

XLA's figure is of the buffers it plans; what its libraries take while they run (packed matrices,
partial sums of threads) is not in it. Ours is of all that a call draws from the pool.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks import report
from benchmarks.suite import Library, Timing, Workload, types_of

Row = dict[str, Any]


def measure_memory(
    chosen: Sequence[Workload | Timing], ours: Library, theirs: Library | None
) -> list[Row]:
    """For each workload the temporary bytes of both libraries."""
    rows = []
    for row in chosen:
        if isinstance(row, Timing):
            continue
        inputs = row.inputs()
        found: Row = {"name": row.name, "group": row.group}
        with types_of(row, ours, theirs):
            for library in (ours, theirs):
                if library is not None:
                    found[library.name] = _temporary_bytes(row, library, inputs)
        rows.append(found)
        print(line(found), flush=True)
    return rows


def heading() -> str:
    text = f"{'workload':34s} {'lamina':>12s} {'jax':>12s}  temporary bytes"
    return report.underlined(text)


def line(row: Row) -> str:
    """One row of the table; `!` marks one where ours are more."""
    theirs = row.get("jax")
    text = f"{row['name']:34s} {row['lamina']:12,d} " + (
        f"{theirs:12,d}" if theirs is not None else f"{'-':>12s}"
    )
    return text + (" !" if theirs is not None and row["lamina"] > theirs else "")


def _temporary_bytes(row: Workload, library: Library, inputs: tuple[Any, ...]) -> int:
    args = library.tree.tree_map(library.np.asarray, inputs)
    compiled = library.jit(row.make(library)).lower(*args).compile()
    return int(compiled.memory_analysis().temp_size_in_bytes)
