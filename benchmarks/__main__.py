"""Measure lamina beside JAX, torch.compile and numba, where they are installed.

    python -m benchmarks [--family NAME] [--only WORD ...] [--quick] [--json FILE] [--chart FILE]

All in one process, by turns (ours, theirs, ours, theirs): medians, their ratio, and the rate
against what the machine was measured to do in the same run. Compile times are with empty caches.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import asdict
from typing import Any

os.environ["LAMINA_CACHE"] = "0"
os.environ.setdefault("JAX_PLATFORMS", "cpu")

from benchmarks import (
    against,
    first_calls,
    memory,
    numerical,
    peers,
    report,
    through_jax,
    workloads,
)
from benchmarks import limits as machine_limits
from benchmarks.arguments import chart_file, chosen_rows, earlier_result, output_file, positive
from benchmarks.measure import Times, interleave
from benchmarks.suite import Library, Timing, Workload, lamina_library, types_of

FAMILIES = {"suite": workloads.ALL, "numerical": numerical.ALL}


def main(argv: list[str] | None = None) -> int:
    """Run the suite; 1 if a workload failed."""
    parser = _parser()
    options = parser.parse_args(argv)
    try:
        chosen = chosen_rows(FAMILIES[options.family], options.only)
    except ValueError as error:
        parser.error(str(error))
    if options.list:
        print("\n".join(f"{row.group:16s} {row.name}" for row in chosen))
        return 0
    if options.memory:
        return _report_memory(chosen, options)
    if options.through_jax:
        return _report_through_jax(parser, chosen, options)
    if options.against:
        return _report_against(parser, chosen, options)
    machine = machine_limits.describe_machine()
    print(f"{machine['processor']}, {machine['cores']} cores, load {machine['load']:.1f}")
    limits = machine_limits.measure_limits()
    print(f"copy {limits['copy'] / 1e9:.0f} GB/s, matmul {limits['matmul'] / 1e9:.0f} GFLOP/s\n")
    ours = lamina_library()
    theirs = None
    versions = {} if options.alone else peers.installed()
    if not options.alone:
        theirs, why_not = peers.open_jax()
        print(peers.heading(versions, why_not) + "\n")
    rows: list[report.Row] = []
    failures: list[report.Row] = []
    print(report.heading())
    for row in chosen:
        try:
            with types_of(row, ours, theirs):
                result = _measured(row, ours, theirs, options)
        except Exception as error:  # one workload must not cost the others
            failures.append({"name": row.name, "group": row.group, "error": peers.shortly(error)})
            print(report.failure(failures[-1]))
            continue
        rows.append(result)
        print(report.line(result, limits), flush=True)
    print("\n" + report.summary(rows))
    if options.json:
        found = {"machine": machine, "limits": limits, "peers": versions, "rows": rows}
        report.write(options.json, found | ({"failures": failures} if failures else {}))
    if options.chart:
        report.chart(options.chart, rows)
    if options.compare:
        print(report.compare(rows, options.compare))
    return 1 if failures else 0


def _report_memory(chosen: list[Workload | Timing], options: argparse.Namespace) -> int:
    print(memory.heading())
    theirs, why_not = (None, None) if options.alone else peers.open_jax()
    if why_not:
        print(f"jax can't be imported: {why_not}")
    rows = memory.measure_memory(chosen, lamina_library(), theirs)
    if options.json:
        options.json.write_text(json.dumps({"memory": rows}, indent=1) + "\n")
    return 0


def _report_through_jax(
    parser: argparse.ArgumentParser, chosen: list[Workload | Timing], options: argparse.Namespace
) -> int:
    os.environ["JAX_PLATFORMS"] = "lamina"
    through, why_not = peers.open_jax()
    if through is None:
        parser.error(f"--through-jax needs JAX: {why_not or 'it is not installed'}")
    machine = machine_limits.describe_machine()
    print(f"{machine['processor']}, {machine['cores']} cores, load {machine['load']:.1f}\n")
    print(through_jax.heading())
    seconds = 0.3 if options.quick else options.seconds
    rows = through_jax.measure(chosen, lamina_library(), through, seconds, options.processor_time)
    print("\n" + through_jax.summary(rows))
    if options.json:
        report.write(options.json, {"machine": machine, "peers": peers.installed(), "through_jax": rows})
    return 1 if any("error" in row for row in rows) else 0


def _report_against(
    parser: argparse.ArgumentParser, chosen: list[Workload | Timing], options: argparse.Namespace
) -> int:
    machine = machine_limits.describe_machine()
    print(f"{machine['processor']}, {machine['cores']} cores, load {machine['load']:.1f}\n")
    seconds = 0.3 if options.quick else options.seconds
    try:
        rows = against.measure(options.against, options.family, chosen, seconds)
    except (OSError, ValueError) as error:
        parser.error(f"--against {options.against}: {peers.shortly(error)}")
    print("\n" + against.summary(rows))
    if options.json:
        report.write(options.json, {"machine": machine, "against": rows})
    return 1 if any("error" in row for row in rows) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--family", choices=sorted(FAMILIES), default="suite", help="(default: suite)")
    parser.add_argument("--only", nargs="+", metavar="WORD", help="rows whose name or group has it")
    parser.add_argument("--quick", action="store_true", help="0.3 s a row instead of --seconds")
    parser.add_argument("--seconds", type=positive, default=2.0, help="for each row (default: 2)")
    parser.add_argument("--processor-time", action="store_true",
                        help="of all threads, instead of the clock's: where other programs run")
    parser.add_argument("--alone", action="store_true", help="without peers")
    parser.add_argument("--memory", action="store_true", help="temporary bytes instead of times")
    parser.add_argument("--through-jax", action="store_true",
                        help="real JAX on lamina's plugin instead of peers: what it adds")
    parser.add_argument("--against", metavar="PYTHON",
                        help="this code beside that of another environment, by turns: how many times as fast it is")
    parser.add_argument("--list", action="store_true", help="the rows, without running them")
    parser.add_argument("--json", type=output_file, help="write the figures to this file")
    parser.add_argument("--chart", type=chart_file, help="write a bar chart to this file")
    parser.add_argument("--compare", type=earlier_result, metavar="OLD", help="an earlier --json file")
    return parser


def _measured(
    row: Workload | Timing, ours: Library, theirs: Library | None, options: argparse.Namespace
) -> report.Row:
    found: report.Row = {"name": row.name, "group": row.group, "bar": row.bar}
    failed: dict[str, str] = {}
    if isinstance(row, Timing):
        found |= {"most": row.most} if row.most else {}
        samples = row.measure(ours, theirs)
        times = [Times.of(part) if part else None for part in samples]
    else:
        inputs = row.inputs()
        call = _call(row, ours, inputs)
        wanted = call()
        peer_call, others = None, {}
        if theirs is not None:
            try:
                peer_call = _call(row, theirs, inputs)
                found_there = peer_call()
                if row.numerical:
                    for result, value in zip(*map(ours.tree.tree_leaves, (found_there, wanted)), strict=True):
                        peers.check(result, value)
            except Exception as error:
                peer_call, failed["jax"] = None, peers.shortly(error)
        if not options.alone:
            others, of_others = peers.calls_of(row.others, inputs, wanted)
            failed |= of_others
        seconds = 0.3 if options.quick else options.seconds
        clock = time.process_time if options.processor_time else time.perf_counter
        times = interleave([call, peer_call, *others.values()], seconds, clock)
        found |= {"flops": row.flops, "bytes": row.bytes, "limit": row.limit, "others": list(others)}
        found |= {name: asdict(t) for name, t in zip(others, times[2:], strict=True) if t}
        if row.numerical:
            found["compile"] = first_calls.measure(row, inputs, ours, theirs if peer_call else None)
    if failed:
        found["failed"] = failed
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


if __name__ == "__main__":
    sys.exit(main())
