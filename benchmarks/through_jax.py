"""What real JAX adds where it runs on lamina's plugin: each workload by both, in one process, by turns.

Both compile with lamina and run in its queue: what differs is who traces, lowers and dispatches, and the
programs that come of it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from benchmarks import first_calls, report
from benchmarks.measure import interleave
from benchmarks.peers import shortly
from benchmarks.suite import Library, Timing, Workload, types_of

Row = dict[str, Any]

LEAST_SECONDS = 100e-6
"""Of a call of ours: where shorter ones go, JAX's own work in a call is a part of the time."""
MOST = {"run": 1.05, "compile": 1.10}
"""What JAX's time by ours may be."""


def measure(
    chosen: Sequence[Workload | Timing], ours: Library, through: Library, seconds: float, processor_time: bool
) -> list[Row]:
    """For each workload the times of a call, of compiling and of the first call, printed on the way."""
    rows = []
    for row in chosen:
        if isinstance(row, Timing):
            continue  # they time the library's own work in Python
        try:
            with types_of(row, ours, through):
                rows.append(_measured(row, ours, through, seconds, processor_time))
        except Exception as error:  # one workload must not cost the others
            rows.append({"name": row.name, "group": row.group, "error": shortly(error)})
        print(line(rows[-1]), flush=True)
    return rows


def _measured(
    row: Workload, ours: Library, through: Library, seconds: float, processor_time: bool
) -> Row:
    inputs = row.inputs()
    calls = []
    for library in (ours, through):
        function = library.jit(row.make(library))
        args = library.tree.tree_map(library.np.asarray, inputs)
        calls.append(lambda f=function, args=args, library=library: library.block_until_ready(f(*args)))
    mine, theirs = interleave(calls, seconds, time.process_time if processor_time else time.perf_counter)
    assert mine is not None and theirs is not None
    compiling = first_calls.measure(row, inputs, ours, through)
    return {
        "name": row.name,
        "group": row.group,
        "lamina": asdict(mine) | compiling[ours.name],
        "through": asdict(theirs) | compiling[through.name],
        "run": theirs.median / mine.median,
        "run_low": theirs.low / mine.high,
        "compile": compiling[through.name]["processor"] / compiling[ours.name]["processor"],
        "first_call": compiling[through.name]["first_call"] / compiling[ours.name]["first_call"],
    }


def heading() -> str:
    text = f"{'workload':34s} {'lamina':>11s} {'by JAX':>11s} {'run':>6s} {'compile':>8s} {'first call':>11s}"
    return report.underlined(text)


def line(row: Row) -> str:
    """One row of the table; `!` marks a ratio above its bar, `~` one within the spread of it."""
    if "error" in row:
        return report.failure(row)
    times = " ".join(report.seconds_text(row[name]["median"]) for name in ("lamina", "through"))
    return (
        f"{row['name']:34s} {times} {row['run']:6.2f}{_mark(row, 'run')}"
        f"{row['compile']:7.2f}{_mark(row, 'compile')} {row['first_call']:10.2f}"
    )


def _mark(row: Row, what: str) -> str:
    if not _counts(row, what) or row[what] <= MOST[what]:
        return " "
    return "~" if row.get(f"{what}_low", row[what]) <= MOST[what] else "!"


def _counts(row: Row, what: str) -> bool:
    return "error" not in row and (what != "run" or row["lamina"]["median"] >= LEAST_SECONDS)


def summary(rows: Sequence[Row]) -> str:
    """How many rows are within the bars, and the geometric means."""
    parts = []
    for what, most in MOST.items():
        ratios = [row[what] for row in rows if _counts(row, what)]
        if ratios:
            within = sum(ratio <= most for ratio in ratios)
            mean = report.geometric_mean(ratios)
            parts.append(f"{what}: {mean:.2f} of ours, {within} of {len(ratios)} within {most:.2f}")
    failed = [row["name"] for row in rows if "error" in row]
    return "; ".join(parts) + (f"; failed: {', '.join(failed)}" if failed else "")
