"""Measure lamina beside JAX, torch.compile and numba, where they are installed.

    python -m benchmarks [--only WORD ...] [--quick] [--json FILE] [--chart FILE] [--compare OLD]

All in one process, by turns (ours, theirs, ours, theirs): medians, their ratio, and the rate
against what the machine was measured to do in the same run. Compile times are with empty caches.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

os.environ["LAMINA_CACHE"] = "0"
os.environ.setdefault("JAX_PLATFORMS", "cpu")

from benchmarks import limits as machine_limits
from benchmarks import memory, report
from benchmarks.measure import Times, interleave
from benchmarks.suite import Library, Timing, Workload, jax_library, lamina_library
from benchmarks.workloads import ALL


def main(argv: list[str] | None = None) -> int:
    """Run the suite; 1 if a workload failed."""
    options = _parser().parse_args(argv)
    chosen = [row for row in ALL if _is_chosen(row, options.only)]
    if options.list or not chosen:
        names = [f"{row.group:16s} {row.name}" for row in (chosen or ALL)]
        print("\n".join(names))
        return 0 if options.list else 2
    if options.memory:
        return _report_memory(chosen, options)
    machine = machine_limits.describe_machine()
    print(f"{machine['processor']}, {machine['cores']} cores, load {machine['load']:.1f}")
    limits = machine_limits.measure_limits()
    print(f"copy {limits['copy'] / 1e9:.0f} GB/s, matmul {limits['matmul'] / 1e9:.0f} GFLOP/s\n")
    ours, theirs = lamina_library(), None if options.alone else jax_library()
    rows: list[report.Row] = []
    failed = 0
    print(report.heading())
    for row in chosen:
        try:
            result = _measured(row, ours, theirs, 0.3 if options.quick else options.seconds)
        except Exception as error:  # one workload must not cost the others
            failed += 1
            print(f"{row.name:34s} failed: {type(error).__name__}: {str(error)[:120]}")
            continue
        rows.append(result)
        print(report.line(result, limits), flush=True)
    print("\n" + report.summary(rows))
    if options.json:
        report.write(options.json, rows, machine, limits)
    if options.chart:
        report.chart(options.chart, rows)
    if options.compare:
        print(report.compare(rows, options.compare))
    return 1 if failed else 0


def _report_memory(chosen: list[Workload | Timing], options: argparse.Namespace) -> int:
    print(memory.heading())
    theirs = None if options.alone else jax_library()
    rows = memory.measure_memory(chosen, lamina_library(), theirs)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps({"memory": rows}, indent=1) + "\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="WORD", help="rows whose name or group has it")
    parser.add_argument("--quick", action="store_true", help="0.3 s a row instead of --seconds")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each row (default: 2)")
    parser.add_argument("--alone", action="store_true", help="without peers")
    parser.add_argument("--memory", action="store_true", help="temporary bytes instead of times")
    parser.add_argument("--list", action="store_true", help="the rows, without running them")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--chart", type=Path, help="write a bar chart to this file")
    parser.add_argument("--compare", type=_result, metavar="OLD", help="an earlier --json file")
    return parser


def _result(name: str) -> Path:
    """The file of an earlier result, looked at before anything is measured."""
    path = Path(name)
    try:
        rows = json.loads(path.read_text())["rows"]
    except (OSError, ValueError, LookupError, TypeError) as error:
        what = error.strerror if isinstance(error, OSError) else "not what --json writes"
        raise argparse.ArgumentTypeError(f"can't compare with {name}: {what}") from None
    if not rows:
        raise argparse.ArgumentTypeError(f"can't compare with {name}: it has no rows")
    return path


def _is_chosen(row: Workload | Timing, words: list[str] | None) -> bool:
    return not words or any(word.lower() in f"{row.group} {row.name}".lower() for word in words)


def _measured(
    row: Workload | Timing, ours: Library, theirs: Library | None, seconds: float
) -> report.Row:
    found: report.Row = {"name": row.name, "group": row.group, "bar": row.bar}
    if isinstance(row, Timing):
        samples = row.measure(ours, theirs)
        times = [Times.of(part) if part else None for part in samples]
    else:
        inputs = row.inputs()
        calls = [_call(row, library, inputs) if library else None for library in (ours, theirs)]
        others = {} if theirs is None else _others(row, inputs)
        times = interleave([*calls, *others.values()], seconds)
        found |= {"flops": row.flops, "bytes": row.bytes, "others": list(others)}
        found |= {name: asdict(t) for name, t in zip(others, times[2:], strict=True) if t}
    mine, peer = times[:2]
    assert mine is not None
    found["lamina"] = asdict(mine)
    if peer is not None:
        found["jax"] = asdict(peer)
        found["ratio"] = peer.median / mine.median
        found["ratio_high"] = peer.high / mine.low
    return found


def _call(row: Workload, library: Library, inputs: tuple[Any, ...]) -> Any:
    function = library.jit(row.make(library))
    args = library.tree.tree_map(library.np.asarray, inputs)
    return lambda: library.block_until_ready(function(*args))


def _others(row: Workload, inputs: tuple[Any, ...]) -> dict[str, Any]:
    found = {}
    for name, make in row.others.items():
        try:
            found[name] = make(*inputs)
            found[name]()
        except Exception:  # not installed, or not able to compile here: no peer
            found.pop(name, None)
    return found


if __name__ == "__main__":
    sys.exit(main())
