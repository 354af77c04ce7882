"""Results as a table, as JSON, as a chart, and against older ones."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

Row = dict[str, Any]
_NOT_RUN_TIMES = ("calls", "compile")
_COMPILING = {"processor": "compile, processor time", "first_call": "first call"}
_HEAD = f"{'workload':34s} {'lamina':>11s} {'jax':>11s} {'ratio':>7s} {'bar':>6s} {'rate':>16s}"


def heading() -> str:
    return underlined(_HEAD)


def underlined(text: str) -> str:
    """The heading of a table, over a line."""
    return text + "\n" + "-" * len(text)


def failure(row: Row) -> str:
    """The line of a workload that could not be measured."""
    return f"{row['name']:34s} failed: {row['error']}"


def line(row: Row, limits: dict[str, float]) -> str:
    """One row of the table; `!` marks a ratio below its bar or a time above its own, `~` one within the
    spread of it."""
    ours, theirs = row["lamina"], row.get("jax")
    failed = row.get("failed", {})
    peer = f"{'failed':>11s}" if "jax" in failed else _time(theirs)
    text = f"{row['name']:34s} {_time(ours)} {peer} {_ratio(row)} "
    bar = row.get("bar")
    text += f"{bar:6.2f}" if bar else "      "
    text += f" {_rate(row, limits):>16s}"
    text += "".join(f"  {name} {_time(row[name]).strip()}" for name in row.get("others", ()))
    ratios = compiling(row)
    text += f"  compile {ratios['processor']:.2f}, first call {ratios['first_call']:.2f}" if ratios else ""
    text += verdict(row)
    return text + "".join(f"\n    {name} failed: {why}" for name, why in failed.items())


def compiling(row: Row) -> dict[str, float]:
    """JAX's time by ours of compiling and of the first call, where a row has them."""
    of = row.get("compile", {})
    if "jax" not in of:
        return {}
    return {what: of["jax"][what] / of["lamina"][what] for what in _COMPILING}


def verdict(row: Row) -> str:
    bar, ratio = row.get("bar"), row.get("ratio")
    if "most" in row and row["lamina"]["median"] > row["most"]:
        return " ~" if row["lamina"]["low"] <= row["most"] else " !"
    if not bar or ratio is None or ratio >= bar:
        return ""
    return " ~" if row.get("ratio_high", ratio) >= bar else " !"


def summary(rows: list[Row]) -> str:
    """The geometric mean of the run-time ratios that have bars, and which rows miss theirs."""
    timed = [r for r in rows if r.get("ratio") and r["bar"] and r["group"] not in _NOT_RUN_TIMES]
    if not timed:
        return "no row with a bar and a peer to compare with"
    mean = geometric_mean([r["ratio"] for r in timed])
    missed = [r["name"] for r in rows if verdict(r) == " !"]
    text = f"geometric mean of {len(timed)} run-time ratios: {mean:.2f}"
    lost = [f"{name} for {r['name']}" for r in rows for name in r.get("failed", ())]
    compiled = [ratios for ratios in map(compiling, rows) if ratios]
    for what, said in _COMPILING.items() if compiled else ():
        found = [ratios[what] for ratios in compiled]
        text += f"; {said}: {geometric_mean(found):.2f}, least {min(found):.2f}"
    text += f"; peers that failed: {', '.join(lost)}" if lost else ""
    return text + (f"; below their bars: {', '.join(missed)}" if missed else "")


def geometric_mean(ratios: list[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def compare(rows: list[Row], older: Path) -> str:
    """How the ratios to JAX, or our times where there are none, moved since an older result."""
    before = {row["name"]: row for row in json.loads(older.read_text())["rows"]}
    lines = [f"against {older}"]
    for row in rows:
        old = before.get(row["name"])
        if old is None:
            lines.append(f"{row['name']:34s} new")
        elif row.get("ratio") and old.get("ratio"):
            change = row["ratio"] / old["ratio"]
            lines.append(f"{row['name']:34s} ratio {old['ratio']:.2f} -> {row['ratio']:.2f}"
                         f"  ({change - 1:+.0%})")  # fmt: skip
        else:
            change = old["lamina"]["median"] / row["lamina"]["median"]
            lines.append(f"{row['name']:34s} speed {change - 1:+.0%}")
    return "\n".join(lines)


def write(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1) + "\n")


def chart(path: Path, rows: list[Row]) -> None:
    """Bars of the ratios, on a logarithmic axis; 1 is JAX."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    timed = [r for r in rows if r.get("ratio")]
    figure, axes = pyplot.subplots(figsize=(8, 0.26 * len(timed) + 1))
    colours = ["#2a7f62" if r["ratio"] >= 1 else "#b5482f" for r in timed]
    axes.barh([r["name"] for r in timed], [r["ratio"] for r in timed], color=colours)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.invert_yaxis()
    axes.set_xlabel("JAX's time by lamina's (more is better)")
    axes.tick_params(labelsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=150)


def _time(times: dict[str, Any] | None) -> str:
    if times is None:
        return f"{'-':>11s}"
    return seconds_text(times["median"])


def seconds_text(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:8.2f} {unit:2s}"
    return f"{seconds * 1e9:8.1f} ns"


def _ratio(row: Row) -> str:
    return f"{row['ratio']:7.2f}" if row.get("ratio") else f"{'-':>7s}"


def _rate(row: Row, limits: dict[str, float]) -> str:
    seconds = row["lamina"]["median"]
    if row.get("flops"):
        limit = limits[row["limit"]]
        rate, unit = row["flops"] / seconds, "GOP/s" if "int8" in row["limit"] else "GFLOP/s"
    elif row.get("bytes"):
        rate, limit, unit = row["bytes"] / seconds, limits["copy"], "GB/s"
    elif row.get("most"):
        return f"of {seconds_text(row['most']).strip()} {seconds / row['most']:4.0%}"
    else:
        return ""
    return f"{rate / 1e9:.0f} {unit} {rate / limit:4.0%}"
