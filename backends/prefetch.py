"""Prefetches for loops that stream through memory.

The processor follows streams by itself, but only to the end of a page, where it finds out anew that
there is one, and the lines to be written it asks for one by one. A vectorised loop that asks for the
lines two kilobytes ahead takes 5 to 30 % less time where the arrays aren't in the cache.
"""

from __future__ import annotations

import re

_LABEL = re.compile(r"([\w.]+):")
_LOAD = re.compile(r"  %[\w.]+ = load <\d+ x \w+>, ptr (%[\w.]+),")
_STORE = re.compile(r"  store <\d+ x \w+> %[\w.]+, ptr (%[\w.]+),")
_DECLARATION = "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)\n"


def with_prefetches(text: str, ahead: int) -> str:
    """LLVM IR that comes from the loop vectoriser, with a prefetch of what is so many bytes ahead after
    each load and store of a vectorised loop. What they ask for past an array's end does nothing."""
    lines: list[str] = []
    in_loop, count = False, 0
    for line in text.splitlines(True):
        lines.append(line)
        if label := _LABEL.match(line):
            in_loop = _goes_on(label[1], in_loop)
        elif in_loop and (access := _LOAD.match(line) or _STORE.match(line)):
            writes = access.re is _STORE
            place = f"%lamina.ahead.{count}"
            lines += [
                f"  {place} = getelementptr i8, ptr {access[1]}, i64 {ahead}\n",
                f"  call void @llvm.prefetch.p0(ptr {place}, i32 {writes:d}, i32 3, i32 1)\n",
            ]
            count += 1
    return "".join(lines) + _DECLARATION * (count > 0)


def _goes_on(label: str, in_loop: bool) -> bool:
    """Whether a block of this name, by what LLVM calls them, is of a vectorised loop."""
    return label.startswith("vector.body") or (in_loop and not label.startswith("middle.block"))
