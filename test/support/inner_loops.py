"""The innermost loops of LLVM IR, and whether they are over vectors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_FUNCTION = re.compile(r"^define [^@]*@(\S+)\(.*?^}", re.MULTILINE | re.DOTALL)
_LABEL = re.compile(r"^(\"[^\"]*\"|[\w.$-]+):")
_TARGET = re.compile(r"label %(\"[^\"]*\"|[\w.$-]+)")
_VECTOR = re.compile(r"<(\d+) x (half|bfloat|float|double|i\d+|ptr)>")
_BITS = {"half": 16, "bfloat": 16, "float": 32, "double": 64, "i8": 8, "i16": 16, "i32": 32, "i64": 64}


@dataclass(frozen=True)
class Loop:
    """An innermost loop of a function: its instructions, in the order in which they are written."""

    function: str
    lines: tuple[str, ...]

    @property
    def vectors(self) -> set[str]:
        """The types of vectors that it works on, such as <16 x float>."""
        return {found[0] for line in self.lines for found in _VECTOR.finditer(line)}

    @property
    def widest_bits(self) -> int:
        """The size of the largest of these; 0 if there are none."""
        found = (_VECTOR.fullmatch(vector) for vector in self.vectors)
        return max((int(v[1]) * _BITS.get(v[2], 0) for v in found if v), default=0)


def inner_loops(text: str) -> Iterator[Loop]:
    """The loops of a module's functions that have no other inside."""
    for found in _FUNCTION.finditer(text):
        blocks = _blocks(found[0])
        ends = {name: lines[-1] if lines else "" for name, lines in blocks.items()}
        loops = _loops({name: _TARGET.findall(end) for name, end in ends.items()})
        for header in (name for name in blocks if name in loops):
            body = loops[header]
            if not any(other != header and other in body for other in loops):
                lines = (line for name in blocks if name in body for line in blocks[name])
                yield Loop(found[1], tuple(lines))


def _blocks(function: str) -> dict[str, list[str]]:
    name = ""
    blocks: dict[str, list[str]] = {name: []}
    pending = ""
    for line in function.splitlines()[1:-1]:
        label = _LABEL.match(line)
        if label:
            name = label[1]
            blocks[name] = []
            if not blocks.get("", [""]):
                del blocks[""]  # the first has a name
        elif line.strip():
            pending += " " + line.strip()
            if pending.startswith(" switch") and not pending.endswith("]"):
                continue
            blocks[name].append(pending)
            pending = ""
    return blocks


def _loops(successors: dict[str, list[str]]) -> dict[str, set[str]]:
    """The blocks of each loop, by the block that is entered first."""
    before: dict[str, list[str]] = {name: [] for name in successors}
    for name, targets in successors.items():
        for target in targets:
            before[target].append(name)
    loops: dict[str, set[str]] = {}
    for latch, header in _back_edges(successors):
        body, todo = {header}, [latch]
        while todo:
            name = todo.pop()
            if name not in body:
                body.add(name)
                todo += before[name]
        loops.setdefault(header, set()).update(body)
    return loops


def _back_edges(successors: dict[str, list[str]]) -> Iterator[tuple[str, str]]:
    start = next(iter(successors))
    path, done = {start}, set()
    stack = [(start, iter(successors[start]))]
    while stack:
        name, targets = stack[-1]
        target = next(targets, None)
        if target is None:
            stack.pop()
            path.discard(name)
            done.add(name)
        elif target in path:
            yield name, target
        elif target not in done:
            path.add(target)
            stack.append((target, iter(successors[target])))
