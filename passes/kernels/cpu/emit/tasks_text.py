"""LLVM text of a parallel loop: pointers go into an array where it is run, and its tasks,
`void @task(ptr %ctx, i64 %low, i64 %high)`, take them out again."""

from __future__ import annotations

from collections.abc import Sequence

from lamina.passes.llvm.call_task_runner import RUNNER

DECLARATION = f"declare void @{RUNNER}(ptr, ptr, i64, i64)"


def pack(pointers: Sequence[str], array: str = "%ctx") -> list[str]:
    """Lines that make the array `array` of these pointers."""
    lines = [f"  {array} = alloca [{len(pointers)} x ptr], align 8"]
    for number, pointer in enumerate(pointers):
        lines.append(f"  {array}_{number} = getelementptr ptr, ptr {array}, i64 {number}")
        lines.append(f"  store ptr {pointer}, ptr {array}_{number}")
    return lines


def unpack(names: Sequence[str], array: str = "%ctx", first: int = 0) -> list[str]:
    """Lines of a task that give its pointers, those at `first` and on, names."""
    lines = []
    for number, name in enumerate(names, first):
        lines.append(f"  {array}_{number} = getelementptr ptr, ptr {array}, i64 {number}")
        lines.append(f"  {name} = load ptr, ptr {array}_{number}")
    return lines


def run(task: str, count: int, grain: int, array: str = "%ctx") -> str:
    """The line that has tasks done, `grain` or more of `count` at a time."""
    return f"  call void @{RUNNER}(ptr @{task}, ptr {array}, i64 {count}, i64 {grain})"
