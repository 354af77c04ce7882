"""Shardy annotations in program text: how to split a program over devices, which we do not read.

JAX writes them for programs with shardings, even for one device. The wheel has no Shardy dialect,
so they are taken out of the text before it is parsed.
"""

from __future__ import annotations

import re

_MESH = re.compile(r"^[ \t]*sdy\.mesh[ \t].*\n?", re.MULTILINE)
_CONSTRAINT = re.compile(
    r"^([ \t]*%[\w.$-]+) = sdy\.sharding_constraint (%[\w.$#-]+) <.*?> : (tensor<[^\n]*?>)"
    r"(?=[ \t]*(?:loc\(|$))",
    re.MULTILINE,
)
_ATTRIBUTE = re.compile(r"(,\s*)?\bsdy\.\w+ = #sdy\.\w+<")


def without_shardings(text: str) -> str:
    """The program without its Shardy annotations; each constraint becomes a reshape to itself."""
    if "sdy." not in text:
        return text
    text = _MESH.sub("", text)
    text = _CONSTRAINT.sub(r"\1 = stablehlo.reshape \2 : (\3) -> \3", text)
    parts, position = [], 0
    while found := _ATTRIBUTE.search(text, position):
        end = _closing(text, found.end())
        if found[1] is None:  # the first of its dictionary: the comma after it goes
            following = re.compile(r"\s*,\s*").match(text, end)
            end = following.end() if following else end
        parts.append(text[position : found.start()])
        position = end
    parts.append(text[position:])
    return "".join(parts)


def _closing(text: str, position: int) -> int:
    """Just after the `>` that closes a bracket opened before `position`."""
    depth = 1
    while depth and position < len(text):
        depth += {"<": 1, ">": -1}.get(text[position], 0)
        position += 1
    return position
