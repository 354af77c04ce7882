"""What kernels of scans have in common: tasks, chunks of long rows, walks along a run of elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lamina.passes.framework.machine import REFERENCE
from lamina.passes.kernels.cpu.emit.llvm_text import Integer, Text
from lamina.passes.kernels.cpu.emit.tasks_text import DECLARATION, pack, run, unpack
from lamina.passes.stablehlo.analysis.scan_order import Scan

_CHUNK_BYTES = REFERENCE.l2_bytes // 16  # of a long row, read twice; for all machines: it decides how sums are rounded
_COLUMNS = 4  # vectors of a block of columns

Task = tuple[str, str]
"""The text of a task's function, and of its call."""


class ScanTasks:
    """Writes the tasks of one kernel on elements of so many bytes; they take the pointers of these
    names."""

    def __init__(self, scan: Scan, vector_bits: int, lanes: int, pointers: Sequence[str], bytes_: int) -> None:
        self.scan, self.bits, self.lanes, self.pointers = scan, vector_bits, lanes, pointers
        self.chunk = _CHUNK_BYTES // bytes_
        self.intrinsics: set[str] = set()

    def assembled(
        self, symbol: str, parameters: str, pointers: Sequence[str], tasks: Sequence[Task]
    ) -> str:
        """The kernel with these parameters, which hands `pointers` to its tasks."""
        bodies, calls = zip(*tasks)
        declared = [DECLARATION, *sorted(self.intrinsics)]
        attributes = f'attributes #0 = {{ "prefer-vector-width"="{self.bits}" }}'
        steps = [*pack(pointers), *calls]
        entry = (
            f"define void @{symbol}({parameters}) #0 {{\n" + "\n".join(steps) + "\n  ret void\n}"
        )
        return "\n".join([*declared, *bodies, entry, attributes]) + "\n"

    @property
    def in_chunks(self) -> bool:
        """Whether rows are so long, and so few, that they are cut into chunks."""
        return self.scan.length >= 2 * self.chunk and self.scan.outer < 16

    def start(self) -> Text:
        """The text of a task that has its pointers."""
        t = Text("float", self.lanes)
        t.lines += unpack(self.pointers)
        return t

    def task(self, name: str, text: Text, count: int, elements: int) -> Task:
        """A task that is done `count` times, each for so many elements."""
        body = "\n".join(text.lines)
        grain = REFERENCE.grain(elements * REFERENCE.apart_ps)
        return (
            f"define internal void @{name}(ptr %ctx, i64 %low, i64 %high) #0 {{\nentry:\n{body}\n"
            "  ret void\n}"
        ), run(name, count, grain)

    def bounds(self, t: Text, number: Integer) -> tuple[Integer, Integer, Integer]:
        """Where a chunk of all rows' begins, how long it is, and the how manieth of its row it is,
        counted from the side that a scan starts at."""
        scan, chunk = self.scan, self.chunk
        row, place = t.divmod(number, -(-scan.length // chunk))
        low = t.mul(place, chunk)
        length = t.minimum(chunk, t.emit(f"sub i64 {scan.length}, {low}"))
        self.intrinsics.add("declare i64 @llvm.smin.i64(i64, i64)")
        if scan.reverse:
            low = t.emit(f"sub i64 {scan.length}, {t.add(low, length)}")
        return t.add(t.mul(row, scan.length), low), length, place

    def walk(
        self,
        t: Text,
        start: Integer,
        length: Integer,
        sizes: Sequence[int],
        step: Callable[[Integer, int], None],
    ) -> None:
        """Runs of these sizes, of each as many as what is left has, from the side that a scan
        starts at."""
        end = t.add(start, length)
        low: Integer = 0
        for size in sizes:
            count, _ = t.divmod(length, size)
            high = t.mul(count, size)
            if low == high:
                continue
            with t.loop(high, low, size) as place:
                if self.scan.reverse:
                    place = t.emit(f"sub i64 {end}, {t.add(place, size)}")
                else:
                    place = t.add(start, place)
                step(place, size)
            low = high

    # ---- rows side by side
    def block_widths(self) -> list[list[int]]:
        """The widths of the vectors of blocks of neighbouring columns: of full ones, if there are,
        and of the last, if it is none."""
        full, rest = divmod(self.scan.inner, _COLUMNS * self.lanes)
        partial = [self.lanes] * (rest // self.lanes) + [rest % self.lanes] * (rest % self.lanes > 0)
        return [[self.lanes] * _COLUMNS] * (full > 0) + [partial] * (rest > 0)

    def column_blocks(
        self, t: Text, block_of: Callable[[Integer, list[int]], None]
    ) -> tuple[int, int]:
        """All blocks, each by `block_of` from its first element and its widths; how many there are,
        and the elements of one."""
        scan, kinds = self.scan, self.block_widths()
        width = _COLUMNS * self.lanes
        count = -(-scan.inner // width)
        with t.loop("%high", "%low") as number:
            row, block = t.divmod(number, count)
            start = t.add(t.mul(row, scan.length * scan.inner), t.mul(block, width))
            if len(kinds) == 1:
                block_of(start, kinds[0])
            else:
                is_full = t.emit(f"icmp slt i64 {block}, {count - 1}")
                with t.branches(is_full) as labels:
                    for label, widths in zip(labels[:2], kinds, strict=True):
                        t.begin(label)
                        block_of(start, widths)
                        t.goto(labels[2])
        return scan.outer * count, scan.length * min(width, scan.inner)
