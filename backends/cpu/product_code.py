"""One function for all matrix products of a type, in LLVM IR: sizes are given when it is called.

    c[m, n] = sum over k of a[m, k] b[k, n]         rows of all three are contiguous

A task has some rows and at most `_PANEL` blocks of columns. For a part of the terms at a time it copies
its columns of b, zeros beside the last one, and multiplies its rows by them: a block of sums is in vector
registers, as in `passes/linalg/register_blocks.py`. Blocks are of two heights that differ by a row, of which
any number of rows from 13 x 12 on is made, and only where sums are stored, the columns past the last are
masked (masked stores cost a fifth of some products' time): so there are two innermost loops in all, and a
program pays for its products with calls.

The words of a job, which its tasks share: see `JOB`.
"""

from __future__ import annotations

import functools

JOB = ("a", "lda", "b", "ldb", "c", "ldc", "m", "n", "k", "chunks", "panels")
"""Pointers and bytes from row to row; the sizes; into how many parts rows and blocks of columns are divided."""
_PANEL = 4  # blocks of columns
_DEPTH = 256  # terms at a time: a block's rows of a, and in turn its panel, are in the first cache
_ROWS = 512  # of a task: the part of a that all its blocks read stays in the second cache
_AHEAD = 8  # rows of b that are fetched while one is copied
_VECTORS = 2  # of a block's columns
_HEIGHTS = {512: 14}  # of blocks, by the width of vectors: sums, those of b and one of a fill the registers
_LEAST_HEIGHT = 6
_LEAST_TASKS = 4


class Shape:
    """Blocks for a width of vectors, in elements of `bits`."""

    def __init__(self, vector_bits: int, bits: int) -> None:
        self.lanes = vector_bits // bits
        self.columns = _VECTORS * self.lanes
        self.rows = _HEIGHTS.get(vector_bits, _LEAST_HEIGHT)
        self.bytes = bits // 8
        self.element = {32: "float", 64: "double"}[bits]
        self.vector = f"<{self.lanes} x {self.element}>"
        self.mask = f"<{self.lanes} x i1>"
        self.suffix = f"v{self.lanes}f{bits}"


def division(m: int, n: int, columns: int) -> tuple[int, int]:
    """Into how many parts a product's rows are divided, and its blocks of so many columns."""
    blocks = -(-n // columns)
    panels = max(-(-blocks // _PANEL), min(blocks, _LEAST_TASKS))
    return -(-m // _ROWS), panels


@functools.lru_cache(16)
def product_code(symbol: str, vector_bits: int, bits: int) -> str:
    """The module that defines `void @symbol(ptr %job, i64 %low, i64 %high)`: some tasks of a job."""
    shape = Shape(vector_bits, bits)
    v, mask = shape.vector, shape.mask
    heights = (shape.rows, shape.rows - 1)
    return "\n".join(
        [
            f"declare {v} @llvm.masked.load.{shape.suffix}.p0(ptr, {mask}, {v})",
            f"declare void @llvm.masked.store.{shape.suffix}.p0({v}, ptr, {mask})",
            "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)",
            f"declare {v} @llvm.fmuladd.{shape.suffix}({v}, {v}, {v})",
            *(_block(shape, height) for height in heights),
            _copy(shape),
            _tasks(symbol, shape),
            f'attributes #0 = {{ noinline nounwind "prefer-vector-width"="{vector_bits}" }}',
            "",
        ]
    )


def _masks(shape: Shape) -> list[str]:
    """Which of a block's columns there are, `%wide` in all, as `%m0` and on."""
    lanes, of = shape.lanes, f"<{shape.lanes} x i64>"
    lines = [
        f"  %w0 = insertelement {of} poison, i64 %wide, i64 0",
        f"  %w = shufflevector {of} %w0, {of} poison, <{lanes} x i32> zeroinitializer",
    ]
    for part in range(_VECTORS):
        count = ", ".join(f"i64 {part * lanes + i}" for i in range(lanes))
        lines.append(f"  %m{part} = icmp slt {of} <{count}>, %w")
    return lines


def _block(shape: Shape, rows: int) -> str:
    """A block of so many rows: adds the products of `%k` terms to what c holds, or to zero."""
    v, size = shape.vector, shape.bytes
    load, store = (f"@llvm.masked.{what}.{shape.suffix}.p0" for what in ("load", "store"))

    def begin(name: str, of: str, with_: str, then: str) -> list[str]:
        ways = ", ".join(f"[ {with_}, %{way} ]" for way in ("entry", "whole", "some"))
        return [f"  {name} = phi {of} {ways}, [ {then}, %loop ]"]

    places = [(row, part) for row in range(rows) for part in range(_VECTORS)]
    lines = [
        f"define internal void @rows_{rows}(ptr noalias %a, i64 %lda, ptr noalias %b, ptr noalias %c, i64 %ldc, "
        "i64 %k, i64 %wide, i1 %first) #0 {",
        "entry:",
        *_masks(shape),
        *(f"  %lda{n} = mul i64 %lda, {n}" for n in (3, 5, 7, 9)),
        "  %far = getelementptr i8, ptr %a, i64 %lda9",
        "  %c0 = getelementptr i8, ptr %c, i64 0",
    ]
    lines += [f"  %c{row} = getelementptr i8, ptr %c{row - 1}, i64 %ldc" for row in range(1, rows)]
    lines += [f"  %p{row}_{part} = getelementptr {v}, ptr %c{row}, i64 {part}" for row, part in places]
    lines += [
        f"  %full = icmp sge i64 %wide, {shape.columns}",
        "  br i1 %first, label %loop, label %more",
        "more:",
        "  br i1 %full, label %whole, label %some",
        "whole:",
        *(f"  %h{r}_{p} = load {v}, ptr %p{r}_{p}, align {size}" for r, p in places),
        "  br label %loop",
        "some:",
    ]
    lines += [
        f"  %i{row}_{part} = call {v} {load}(ptr align {size} %p{row}_{part}, {shape.mask} %m{part}, "
        f"{v} zeroinitializer)"
        for row, part in places
    ]
    lines += [
        "  br label %loop",
        "loop:",
        *begin("%t", "i64", "%k", "%left"),
        *begin("%a0", "ptr", "%a", "%a0n"),
        *begin("%a9", "ptr", "%far", "%a9n"),
        *begin("%at", "ptr", "%b", "%atn"),
        *(
            f"  %s{r}_{p} = phi {v} [ zeroinitializer, %entry ], [ %h{r}_{p}, %whole ], [ %i{r}_{p}, %some ], "
            f"[ %n{r}_{p}, %loop ]"
            for r, p in places
        ),
    ]
    for part in range(_VECTORS):
        lines += [
            f"  %q{part} = getelementptr {v}, ptr %at, i64 {part}",
            f"  %b{part} = load {v}, ptr %q{part}, align {shape.lanes * size}",
        ]
    for row in range(rows):
        lines += _row_of_a(row)
        lines += [
            f"  %e{row} = load {shape.element}, ptr %x{row}, align {size}",
            f"  %f{row} = insertelement {v} poison, {shape.element} %e{row}, i64 0",
            f"  %g{row} = shufflevector {v} %f{row}, {v} poison, <{shape.lanes} x i32> zeroinitializer",
        ]
        lines += [
            f"  %n{row}_{part} = call {v} @llvm.fmuladd.{shape.suffix}({v} %g{row}, {v} %b{part}, {v} %s{row}_{part})"
            for part in range(_VECTORS)
        ]
    lines += [
        f"  %a0n = getelementptr i8, ptr %a0, i64 {size}",
        f"  %a9n = getelementptr i8, ptr %a9, i64 {size}",
        f"  %atn = getelementptr i8, ptr %at, i64 {shape.columns * size}",
        "  %left = add i64 %t, -1",
        "  %end = icmp eq i64 %left, 0",
        "  br i1 %end, label %sums, label %loop",
        "sums:",
        "  br i1 %full, label %all, label %masked",
        "all:",
        *(f"  store {v} %n{r}_{p}, ptr %p{r}_{p}, align {size}" for r, p in places),
        "  ret void",
        "masked:",
    ]
    lines += [
        f"  call void {store}({v} %n{row}_{part}, ptr align {size} %p{row}_{part}, {shape.mask} %m{part})"
        for row, part in places
    ]
    return "\n".join([*lines, "  ret void", "}"])


def _row_of_a(row: int) -> list[str]:
    """The address `%x` of a row's element: one that an instruction adds up from four multiples of the distance."""
    near, of = ("%a0", row) if row < 9 else ("%a9", row - 9)
    if not of:
        return [f"  %x{row} = getelementptr i8, ptr {near}, i64 0"]
    odd, shift = of, 0
    while odd % 2 == 0:
        odd, shift = odd // 2, shift + 1
    distance = "%lda" if odd == 1 else f"%lda{odd}"
    return [
        f"  %o{row} = shl i64 {distance}, {shift}",
        f"  %x{row} = getelementptr i8, ptr {near}, i64 %o{row}",
    ]


def _copy(shape: Shape) -> str:
    """Copy `%k` rows of `%blocks` blocks of columns of b, `%columns` in all: block after block, each with its
    rows side by side. Rows are far from each other in b, where what fetches ahead in the processor stops at the end
    of a page: some are fetched ahead."""
    v, size, lanes = shape.vector, shape.bytes, shape.lanes
    lines = [
        "define internal void @copy(ptr noalias %b, i64 %ldb, ptr noalias %panel, i64 %k, i64 %blocks, "
        "i64 %columns) #0 {",
        "entry:",
        f"  %apart = mul i64 %k, {shape.columns * size}",
        f"  %ahead = mul i64 %ldb, {_AHEAD}",
        "  br label %row",
        "row:",
        "  %t = phi i64 [ %k, %entry ], [ %left, %row_end ]",
        "  %b_row = phi ptr [ %b, %entry ], [ %b_next, %row_end ]",
        "  %p_row = phi ptr [ %panel, %entry ], [ %p_next, %row_end ]",
        "  br label %loop",
        "loop:",
        "  %j = phi i64 [ %blocks, %row ], [ %jn, %loop ]",
        "  %wide = phi i64 [ %columns, %row ], [ %wide_next, %loop ]",
        "  %from = phi ptr [ %b_row, %row ], [ %fromn, %loop ]",
        "  %to = phi ptr [ %p_row, %row ], [ %ton, %loop ]",
        *_masks(shape),
        "  %soon = getelementptr i8, ptr %from, i64 %ahead",
    ]
    for line in range(0, shape.columns * size, 64):
        lines += [
            f"  %soon{line} = getelementptr i8, ptr %soon, i64 {line}",
            f"  call void @llvm.prefetch.p0(ptr %soon{line}, i32 0, i32 3, i32 1)",
        ]
    for part in range(_VECTORS):
        lines += [
            f"  %x{part} = getelementptr {v}, ptr %from, i64 {part}",
            f"  %y{part} = getelementptr {v}, ptr %to, i64 {part}",
            f"  %v{part} = call {v} @llvm.masked.load.{shape.suffix}.p0(ptr align {size} %x{part}, "
            f"{shape.mask} %m{part}, {v} zeroinitializer)",
            f"  store {v} %v{part}, ptr %y{part}, align {lanes * size}",
        ]
    return "\n".join(
        [
            *lines,
            f"  %fromn = getelementptr i8, ptr %from, i64 {shape.columns * size}",
            "  %ton = getelementptr i8, ptr %to, i64 %apart",
            f"  %wide_next = add i64 %wide, -{shape.columns}",
            "  %jn = add i64 %j, -1",
            "  %row_done = icmp eq i64 %jn, 0",
            "  br i1 %row_done, label %row_end, label %loop",
            "row_end:",
            "  %b_next = getelementptr i8, ptr %b_row, i64 %ldb",
            f"  %p_next = getelementptr i8, ptr %p_row, i64 {shape.columns * size}",
            "  %left = add i64 %t, -1",
            "  %end = icmp eq i64 %left, 0",
            "  br i1 %end, label %done, label %row",
            "done:",
            "  ret void",
            "}",
        ]
    )


def _tasks(symbol: str, shape: Shape) -> str:
    """The loops over tasks, parts of the terms, blocks of columns and of rows."""
    size, columns, rows = shape.bytes, shape.columns, shape.rows
    fields = "\n".join(
        f"  %at_{name} = getelementptr i64, ptr %job, i64 {number}\n"
        f"  %{name} = load {'ptr' if name in 'abc' else 'i64'}, ptr %at_{name}, align 8"
        for number, name in enumerate(JOB)
    )
    given = (
        "ptr %a_rows, i64 %lda, ptr %b_block, ptr %c_rows, i64 %ldc, i64 %terms, i64 %wide, i1 %first"
    )
    return f"""define void @{symbol}(ptr %job, i64 %low, i64 %high) #0 {{
entry:
  %panel = alloca [{_PANEL * columns * _DEPTH} x {shape.element}], align 64
{fields}
  %up = add i64 %n, {columns - 1}
  %blocks = udiv i64 %up, {columns}
  %deep = add i64 %k, {_DEPTH - 1}
  %parts = udiv i64 %deep, {_DEPTH}
  br label %task
task:
  %i = phi i64 [ %low, %entry ], [ %i_next, %task_end ]
  %more = icmp slt i64 %i, %high
  br i1 %more, label %begin, label %done
done:
  ret void
begin:
  %chunk = udiv i64 %i, %panels
  %number = urem i64 %i, %panels
{_part_of("row", "%m", "%chunk", "%chunks")}
{_part_of("block", "%blocks", "%number", "%panels")}
  %height = sub i64 %row_high, %row_low
  %rows_up = add i64 %height, {rows - 1}
  %kinds = udiv i64 %rows_up, {rows}
  %short = mul i64 %kinds, {rows - 1}
  %tall = sub i64 %height, %short
  %a_far = mul i64 %row_low, %lda
  %a_task = getelementptr i8, ptr %a, i64 %a_far
  %c_far = mul i64 %row_low, %ldc
  %c_task = getelementptr i8, ptr %c, i64 %c_far
  br label %part
part:
  %p = phi i64 [ 0, %begin ], [ %p_next, %part_end ]
  %first = icmp eq i64 %p, 0
{_part_of("term", "%k", "%p", "%parts")}
  %terms = sub i64 %term_high, %term_low
  %b_far = mul i64 %term_low, %ldb
  %b_part = getelementptr i8, ptr %b, i64 %b_far
  %a_part_far = mul i64 %term_low, {size}
  %a_part = getelementptr i8, ptr %a_task, i64 %a_part_far
  %panel_column = mul i64 %block_low, {columns}
  %panel_wide = sub i64 %n, %panel_column
  %panel_far = mul i64 %panel_column, {size}
  %b_panel = getelementptr i8, ptr %b_part, i64 %panel_far
  %some = sub i64 %block_high, %block_low
  %apart = mul i64 %terms, {columns * size}
  call void @copy(ptr %b_panel, i64 %ldb, ptr %panel, i64 %terms, i64 %some, i64 %panel_wide)
  br label %block
block:
  %b_block = phi ptr [ %panel, %part ], [ %b_next, %block_end ]
  %j = phi i64 [ %block_low, %part ], [ %j_next, %block_end ]
  %column = mul i64 %j, {columns}
  %wide = sub i64 %n, %column
  %column_far = mul i64 %column, {size}
  %c_block = getelementptr i8, ptr %c_task, i64 %column_far
  br label %rows
rows:
  %r = phi i64 [ 0, %block ], [ %r_next, %rows_end ]
  %a_rows = phi ptr [ %a_part, %block ], [ %a_next, %rows_end ]
  %c_rows = phi ptr [ %c_block, %block ], [ %c_next, %rows_end ]
  %is_tall = icmp slt i64 %r, %tall
  br i1 %is_tall, label %rows_tall, label %rows_short
rows_tall:
  call void @rows_{rows}({given})
  br label %rows_end
rows_short:
  call void @rows_{rows - 1}({given})
  br label %rows_end
rows_end:
  %those = phi i64 [ {rows}, %rows_tall ], [ {rows - 1}, %rows_short ]
  %a_step = mul i64 %those, %lda
  %a_next = getelementptr i8, ptr %a_rows, i64 %a_step
  %c_step = mul i64 %those, %ldc
  %c_next = getelementptr i8, ptr %c_rows, i64 %c_step
  %r_next = add i64 %r, 1
  %rows_more = icmp slt i64 %r_next, %kinds
  br i1 %rows_more, label %rows, label %block_end
block_end:
  %j_next = add i64 %j, 1
  %b_next = getelementptr i8, ptr %b_block, i64 %apart
  %block_more = icmp slt i64 %j_next, %block_high
  br i1 %block_more, label %block, label %part_end
part_end:
  %p_next = add i64 %p, 1
  %part_more = icmp slt i64 %p_next, %parts
  br i1 %part_more, label %part, label %task_end
task_end:
  %i_next = add i64 %i, 1
  br label %task
}}"""


def _part_of(name: str, extent: str, number: str, count: str) -> str:
    """`%name_low` and `%name_high`: one of some parts, of about equal sizes, of an extent."""
    return f"""  %{name}_scaled = mul i64 {extent}, {number}
  %{name}_low = udiv i64 %{name}_scaled, {count}
  %{name}_after = add i64 %{name}_scaled, {extent}
  %{name}_high = udiv i64 %{name}_after, {count}"""
