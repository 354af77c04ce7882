"""Results as a table, as JSON, as a chart, and against older ones."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

Row = dict[str, Any]
_NOT_RUN_TIMES = ("calls", "compile")
_HEAD = f"{'workload':34s} {'lamina':>11s} {'jax':>11s} {'ratio':>7s} {'bar':>6s} {'rate':>16s}"


def heading() -> str:
    return _HEAD + "\n" + "-" * len(_HEAD)


def line(row: Row, limits: dict[str, float]) -> str:
    """One row of the table; `!` marks a ratio below its bar, `~` one within the spread of it."""
    ours, theirs = row["lamina"], row.get("jax")
    text = f"{row['name']:34s} {_time(ours)} {_time(theirs)} {_ratio(row)} "
    bar = row.get("bar")
    text += f"{bar:6.2f}" if bar else "      "
    text += f" {_rate(row, limits):>16s}"
    text += "".join(f"  {name} {_time(row[name]).strip()}" for name in row.get("others", ()))
    return text + verdict(row)


def verdict(row: Row) -> str:
    bar, ratio = row.get("bar"), row.get("ratio")
    if not bar or ratio is None or ratio >= bar:
        return ""
    return " ~" if row.get("ratio_high", ratio) >= bar else " !"


def summary(rows: list[Row]) -> str:
    """The geometric mean of the run-time ratios that have bars, and which rows miss theirs."""
    timed = [r for r in rows if r.get("ratio") and r["bar"] and r["group"] not in _NOT_RUN_TIMES]
    if not timed:
        return "no row with a bar and a peer to compare with"
    mean = math.exp(sum(math.log(r["ratio"]) for r in timed) / len(timed))
    missed = [r["name"] for r in rows if verdict(r) == " !"]
    text = f"geometric mean of {len(timed)} run-time ratios: {mean:.2f}"
    return text + (f"; below their bars: {', '.join(missed)}" if missed else "")


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


def write(path: Path, rows: list[Row], machine: dict[str, Any], limits: dict[str, float]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"machine": machine, "limits": limits, "rows": rows}
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
    seconds = times["median"]
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:8.2f} {unit:2s}"
    return f"{seconds * 1e9:8.1f} ns"


def _ratio(row: Row) -> str:
    return f"{row['ratio']:7.2f}" if row.get("ratio") else f"{'-':>7s}"


def _rate(row: Row, limits: dict[str, float]) -> str:
    seconds = row["lamina"]["median"]
    if row.get("flops"):
        rate, limit, unit = row["flops"] / seconds, limits["matmul"], "GFLOP/s"
    elif row.get("bytes"):
        rate, limit, unit = row["bytes"] / seconds, limits["copy"], "GB/s"
    else:
        return ""
    return f"{rate / 1e9:.0f} {unit} {rate / limit:4.0%}"
