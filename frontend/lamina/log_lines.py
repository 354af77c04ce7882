"""Lines of LAMINA_LOG: `lamina: <topic> <milliseconds>: <text>` on the standard error stream."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from lamina import config


def write(topic: str, seconds: float, text: str, more: Sequence[str] = ()) -> None:
    """Says what was done and how long it took, where the topic is to be logged.

    topic    one of `config.log`: retrace, compile, cache, partition, distributed
    seconds  what it took
    more     lines that belong to this one, written below it
    """
    if config.logs(topic):
        lines = [f"lamina: {topic} {seconds * 1e3:.1f} ms: {text}"]
        lines += [f"lamina: {topic}:   {line}" for line in more]
        print("\n".join(lines), file=sys.stderr)
