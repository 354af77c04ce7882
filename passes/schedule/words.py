"""A schedule as text, and back.

    s0: i j; s1: j:64 i* j; share s0 s1 at 1; parallel s0 1 grain 4; tile s2

says of each statement in which loops it runs (`j:64` walks blocks of 64, `i*` is unrolled), which neighbours share how
many of them, how many leading loops are tasks, of at least how many iterations, and which statements are done by a
kernel of vectors. What a text leaves out is as in `Schedule.of`.
"""

from __future__ import annotations

import re

from lamina.passes.schedule.nest import DIMENSIONS, Nest
from lamina.passes.schedule.schedule import Illegal, Loop, Schedule, divide, nested, share, tile

_LOOP = re.compile(r"([a-z])(?::(\d+))?(\*?)")
_ORDER = re.compile(r"s(\d+):(.*)")
_SHARE = re.compile(r"share s(\d+) s(\d+) at (\d+)")
_PARALLEL = re.compile(r"parallel s(\d+) (\d+) grain (\d+)")
_TILE = re.compile(r"tile s(\d+)")


def to_text(schedule: Schedule) -> str:
    """The schedule in one line."""
    words = [f"s{number}: {' '.join(map(str, loops))}".rstrip() for number, loops in enumerate(schedule.loops)]
    words += [f"tile s{number}" for number in sorted(schedule.tiled)]
    words += [f"share s{number} s{number + 1} at {count}" for number, count in enumerate(schedule.shared) if count]
    for group in schedule.groups():
        loops, grain = schedule.tasks[group.start]
        if loops:
            words.append(f"parallel s{group.start} {loops} grain {grain}")
    return "; ".join(words)


def from_text(text: str, nest: Nest) -> Schedule:
    """The schedule of a nest that a text says. Raises `Illegal` for one that would change results, ValueError for
    what is no schedule."""
    schedule = Schedule.of(nest)
    for part in filter(None, map(str.strip, text.split(";"))):
        schedule = _applied(schedule, part)
    return schedule


def _applied(schedule: Schedule, part: str) -> Schedule:
    if found := _ORDER.fullmatch(part):
        return nested(schedule, _number(schedule, found[1]), [_loop(word) for word in found[2].split()])
    if found := _SHARE.fullmatch(part):
        first, second = _number(schedule, found[1]), _number(schedule, found[2])
        if second != first + 1:
            raise Illegal(f"{part}: only a statement and the next can share loops")
        return share(schedule, first, int(found[3]))
    if found := _PARALLEL.fullmatch(part):
        number = _number(schedule, found[1])
        group = next(group for group in schedule.groups() if number in group)
        return divide(schedule, group, int(found[2]), max(1, int(found[3])))
    if found := _TILE.fullmatch(part):
        return tile(schedule, _number(schedule, found[1]))
    raise ValueError(
        f"{part!r} is no part of a schedule: that has 's0: i j:64 j', 'share s0 s1 at 1', 'parallel s0 1 grain 4'"
        " and 'tile s0'"
    )


def _number(schedule: Schedule, text: str) -> int:
    count = len(schedule.loops)
    if int(text) >= count:
        raise Illegal(f"there is no statement s{text}; there are {count}")
    return int(text)


def _loop(word: str) -> Loop:
    found = _LOOP.fullmatch(word)
    if found is None:
        raise ValueError(f"{word!r} is no loop: they are called i, j:64 or k*")
    step = int(found[2] or 1)
    if step < 1 or (found[2] and (step == 1 or found[3])):
        raise ValueError(f"{word!r} is no loop: a block has two positions or more, and only single ones are unrolled")
    return Loop(DIMENSIONS.index(found[1]), step, bool(found[3]))
