"""What the command line says, looked at before minutes of measuring."""

from __future__ import annotations

import argparse
import difflib
import json
import math
from collections.abc import Sequence
from pathlib import Path

from benchmarks.suite import Timing, Workload

Row = Workload | Timing


def chosen_rows(rows: Sequence[Row], words: Sequence[str] | None) -> list[Row]:
    """The rows whose name or group has one of the words. ValueError for a word that none has."""
    if not words:
        return list(rows)
    lost = [word for word in words if not any(_has(row, word) for row in rows)]
    if lost:
        raise ValueError("\n".join(map(lambda word: _nothing(rows, word), lost)))
    return [row for row in rows if any(_has(row, word) for word in words)]


def _has(row: Row, word: str) -> bool:
    return word.lower() in f"{row.group} {row.name}".lower()


def _nothing(rows: Sequence[Row], word: str) -> str:
    names = [row.name for row in rows]
    groups = list(dict.fromkeys(row.group for row in rows))
    wanted = word.lower()

    def likeness(name: str) -> float:
        """Of the word and the part of a name that is most like it."""
        parts = [name.lower(), *name.lower().replace(",", " ").split()]
        return max(difflib.SequenceMatcher(None, wanted, part).ratio() for part in parts)

    near = sorted((name for name in [*groups, *names] if likeness(name) >= 0.7), key=likeness, reverse=True)
    said = f"no row has {word!r} in its name or group"
    if near:
        return f"{said}; near it: {', '.join(near[:8])}"
    return f"{said}; groups: {', '.join(groups)}; rows:\n" + "\n".join(f"  {name}" for name in names)


def output_file(name: str) -> Path:
    """A file that can be written, in a folder that is made where it is not there."""
    path = Path(name)
    if path.parent.exists() and not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"can't write {name}: {path.parent} is no directory")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        is_new = not path.exists()
        with path.open("a"):
            pass
        if is_new:
            path.unlink()
    except OSError as error:
        raise argparse.ArgumentTypeError(f"can't write {name}: {error.strerror}") from None
    return path


def chart_file(name: str) -> Path:
    """The same, for a picture: matplotlib has to be there, and to know the ending."""
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError:
        raise argparse.ArgumentTypeError("a chart needs matplotlib: pip install matplotlib") from None
    kinds = FigureCanvasBase.get_supported_filetypes()
    ending = Path(name).suffix.removeprefix(".")
    if ending not in kinds:
        raise argparse.ArgumentTypeError(f"can't draw {name}: it must end in one of {', '.join(sorted(kinds))}")
    return output_file(name)


def earlier_result(name: str) -> Path:
    """The file of an earlier result."""
    path = Path(name)
    try:
        rows = json.loads(path.read_text())["rows"]
        [(row["name"], row["lamina"]["median"]) for row in rows]
    except (OSError, ValueError, LookupError, TypeError) as error:
        what = error.strerror if isinstance(error, OSError) else "not what --json writes"
        raise argparse.ArgumentTypeError(f"can't compare with {name}: {what}") from None
    if not rows:
        raise argparse.ArgumentTypeError(f"can't compare with {name}: it has no rows")
    return path


def positive(text: str) -> float:
    """A number of seconds."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return number
