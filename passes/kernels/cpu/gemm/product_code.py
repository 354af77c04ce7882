"""One function for all matrix products of a type and order of factors, in LLVM IR: sizes are given when it is called.

    c[g, m, n] = sum over k of a[g, m, k] b[g, k, n]         rows of c are contiguous; those of a and b, or
                                                             their columns, which is another function

It is the scheme of BLIS (Van Zee and van de Geijn, ACM TOMS 41, 2015). A task has some rows and some blocks of
columns. For a part of the terms at a time it packs its rows of a, which then stay in the second cache, and in
turn a panel of b, of which a block of columns stays in the first, and multiplies the one by the other: a block of
sums is in vector registers, as in `passes/kernels/cpu/gemm/register_blocks.py`. What is packed is whole: zeros
stand where there are no more rows and columns, so that there is one innermost loop, and only loads and stores of
sums are masked, in the blocks at the edges.

The words of a job, which its tasks share: see `JOB`.
"""

from __future__ import annotations

import functools
from math import ceil

from lamina.passes.framework.machine import REFERENCE

JOB = (
    "a", "lda", "b", "ldb", "c", "ldc", "m", "n", "k", "rows", "chunks", "panels", "next_a", "next_b", "next_c",
)  # fmt: skip
"""Pointers, and bytes from one contiguous row or column to the next; the sizes; rows of a task; how many tasks the
rows are divided into, and the blocks of columns; bytes from one product of a batch to the next."""
_DEPTH = 192  # terms at a time, of which packed a and b are in a first cache: how sums are cut is the same everywhere
_PACKED_BYTES = REFERENCE.l2_bytes // 4  # of a, on a task's stack
_TASK_COLUMNS = 512  # enough to make up for packing a
_VECTORS = 2  # of a block's columns
_PANEL = 4  # blocks of b that are packed together, which reads lines side by side
_HEIGHTS = {512: 14}  # of blocks, by the width of vectors: sums, those of b and one of a fill the registers
_LEAST_HEIGHT = 6  # shape: rows of a block where vectors leave fewer registers
_LEAST_TASKS = 4  # shape: of a product, if it has so many blocks


class Shape:
    """Blocks for a width of vectors, in elements of `bits`; whether the columns of a, and of b, are contiguous."""

    def __init__(self, vector_bits: int, bits: int, a_turned: bool = False, b_turned: bool = False) -> None:
        self.lanes = vector_bits // bits
        self.columns = _VECTORS * self.lanes
        self.rows = _HEIGHTS.get(vector_bits, _LEAST_HEIGHT)
        self.bytes = bits // 8
        self.element = {32: "float", 64: "double"}[bits]
        self.vector = f"<{self.lanes} x {self.element}>"
        self.mask = f"<{self.lanes} x i1>"
        self.suffix = f"v{self.lanes}f{bits}"
        self.a_turned, self.b_turned = a_turned, b_turned
        # Of packed a; after a block, there is room for a vector that is stored at its last term.
        self.block = self.rows * _DEPTH * self.bytes + REFERENCE.line_bytes
        self.most_rows = _PACKED_BYTES // (_DEPTH * self.bytes) // self.rows * self.rows

    def division(self, m: int, n: int) -> tuple[int, int, int]:
        """Rows of a task, in whole blocks, and into how many tasks the rows and the columns of a product go: what
        a task packs of one factor it uses for each of its rows, or columns, of the other."""
        blocks_of_rows, blocks = ceil(m / self.rows), ceil(n / self.columns)
        chunks, panels = ceil(m / self.most_rows), ceil(n / _TASK_COLUMNS)
        while chunks * panels < min(_LEAST_TASKS, blocks_of_rows * blocks):
            if (m / chunks >= n / panels and chunks < blocks_of_rows) or panels == blocks:
                chunks = min(2 * chunks, blocks_of_rows)
            else:
                panels = min(2 * panels, blocks)
        rows = ceil(blocks_of_rows / chunks) * self.rows
        return rows, ceil(m / rows), panels


@functools.lru_cache(16)
def product_code(symbol: str, vector_bits: int, bits: int, a_turned: bool = False, b_turned: bool = False) -> str:
    """The module that defines `void @symbol(ptr %job, i64 %low, i64 %high)`: some tasks of a job."""
    shape = Shape(vector_bits, bits, a_turned, b_turned)
    v, mask = shape.vector, shape.mask
    return "\n".join(
        [
            f"declare {v} @llvm.masked.load.{shape.suffix}.p0(ptr, {mask}, {v})",
            f"declare void @llvm.masked.store.{shape.suffix}.p0({v}, ptr, {mask})",
            "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)",
            f"declare {v} @llvm.fmuladd.{shape.suffix}({v}, {v}, {v})",
            _block(shape),
            (_copy if a_turned else _transpose)(shape, "pack_a", shape.rows, shape.block),
            (_transpose if b_turned else _copy)(shape, "pack_b", shape.columns, shape.columns * _DEPTH * shape.bytes),
            _tasks(symbol, shape),
            f'attributes #0 = {{ noinline nounwind "prefer-vector-width"="{vector_bits}" }}',
            "",
        ]
    )


def _masks(shape: Shape, count: str, name: str, vectors: int) -> list[str]:
    """Which elements of some vectors are among the first `count`, as `%name0` and on."""
    lanes, of = shape.lanes, f"<{shape.lanes} x i64>"
    lines = [
        f"  %{name}_all0 = insertelement {of} poison, i64 {count}, i64 0",
        f"  %{name}_all = shufflevector {of} %{name}_all0, {of} poison, <{lanes} x i32> zeroinitializer",
    ]
    for part in range(vectors):
        numbers = ", ".join(f"i64 {part * lanes + i}" for i in range(lanes))
        lines.append(f"  %{name}{part} = icmp slt {of} <{numbers}>, %{name}_all")
    return lines


def _load(shape: Shape, place: str, mask: str) -> str:
    """A vector of what a mask allows, zeros beside it."""
    return (
        f"call {shape.vector} @llvm.masked.load.{shape.suffix}.p0(ptr align {shape.bytes} {place}, "
        f"{shape.mask} {mask}, {shape.vector} zeroinitializer)"
    )


def _block(shape: Shape) -> str:
    """A block of sums: those of `%k` terms, and what c holds if they are not the first. Of the block's rows
    there are `%high` in c, of its columns `%wide`."""
    v, size, lanes = shape.vector, shape.bytes, shape.lanes
    rows = range(shape.rows)
    places = [(row, part) for row in rows for part in range(_VECTORS)]
    lines = [
        "define internal void @block(ptr noalias %a, ptr noalias %b, ptr noalias %c, i64 %ldc, i64 %k, i64 %high, "
        "i64 %wide, i1 %first) #0 {",
        "entry:",
        "  %c0 = getelementptr i8, ptr %c, i64 0",
        *(f"  %c{row} = getelementptr i8, ptr %c{row - 1}, i64 %ldc" for row in rows[1:]),
        *(f"  %p{row}_{part} = getelementptr {v}, ptr %c{row}, i64 {part}" for row, part in places),
        *(f"  call void @llvm.prefetch.p0(ptr %p{row}_0, i32 1, i32 3, i32 1)" for row in rows),
        "  br label %loop",
        "loop:",
        "  %t = phi i64 [ %k, %entry ], [ %left, %loop ]",
        "  %at = phi ptr [ %a, %entry ], [ %a_next, %loop ]",
        "  %bt = phi ptr [ %b, %entry ], [ %b_next, %loop ]",
        *(f"  %s{r}_{p} = phi {v} [ zeroinitializer, %entry ], [ %n{r}_{p}, %loop ]" for r, p in places),
    ]
    for part in range(_VECTORS):
        lines += [
            f"  %q{part} = getelementptr {v}, ptr %bt, i64 {part}",
            f"  %b{part} = load {v}, ptr %q{part}, align {lanes * size}",
        ]
    for row in rows:
        lines += [
            f"  %x{row} = getelementptr i8, ptr %at, i64 {row * size}",
            f"  %e{row} = load {shape.element}, ptr %x{row}, align {size}",
            f"  %f{row} = insertelement {v} poison, {shape.element} %e{row}, i64 0",
            f"  %g{row} = shufflevector {v} %f{row}, {v} poison, <{lanes} x i32> zeroinitializer",
        ]
        lines += [
            f"  %n{row}_{part} = call {v} @llvm.fmuladd.{shape.suffix}({v} %g{row}, {v} %b{part}, {v} %s{row}_{part})"
            for part in range(_VECTORS)
        ]
    lines += [
        f"  %a_next = getelementptr i8, ptr %at, i64 {shape.rows * size}",
        f"  %b_next = getelementptr i8, ptr %bt, i64 {shape.columns * size}",
        "  %left = add i64 %t, -1",
        "  %end = icmp eq i64 %left, 0",
        "  br i1 %end, label %sums, label %loop",
        "sums:",
        f"  %tall = icmp sge i64 %high, {shape.rows}",
        f"  %full = icmp sge i64 %wide, {shape.columns}",
        "  %whole = and i1 %tall, %full",
        "  br i1 %whole, label %all, label %edge",
        "all:",
        "  br i1 %first, label %all_first, label %all_more",
        "all_first:",
        *(f"  store {v} %n{r}_{p}, ptr %p{r}_{p}, align {size}" for r, p in places),
        "  ret void",
        "all_more:",
    ]
    for r, p in places:
        lines += [
            f"  %h{r}_{p} = load {v}, ptr %p{r}_{p}, align {size}",
            f"  %w{r}_{p} = fadd {v} %h{r}_{p}, %n{r}_{p}",
            f"  store {v} %w{r}_{p}, ptr %p{r}_{p}, align {size}",
        ]
    lines += ["  ret void", "edge:", *_masks(shape, "%wide", "m", _VECTORS), "  br label %row0"]
    for row in rows:
        after = f"row{row + 1}" if row + 1 < shape.rows else "done"
        lines += [
            f"row{row}:",
            f"  %is{row} = icmp sgt i64 %high, {row}",
            f"  br i1 %is{row}, label %is_row{row}, label %done",
            f"is_row{row}:",
            f"  br i1 %first, label %store{row}, label %more{row}",
            f"more{row}:",
        ]
        for p in range(_VECTORS):
            lines += [
                f"  %i{row}_{p} = {_load(shape, f'%p{row}_{p}', f'%m{p}')}",
                f"  %j{row}_{p} = fadd {v} %i{row}_{p}, %n{row}_{p}",
            ]
        lines += [f"  br label %store{row}", f"store{row}:"]
        lines += [
            f"  %k{row}_{p} = phi {v} [ %n{row}_{p}, %is_row{row} ], [ %j{row}_{p}, %more{row} ]"
            for p in range(_VECTORS)
        ]
        lines += [
            f"  call void @llvm.masked.store.{shape.suffix}.p0({v} %k{row}_{p}, ptr align {size} %p{row}_{p}, "
            f"{shape.mask} %m{p})"
            for p in range(_VECTORS)
        ]
        lines.append(f"  br label %{after}")
    return "\n".join([*lines, "done:", "  ret void", "}"])


def _copy(shape: Shape, name: str, width: int, block: int) -> str:
    """Packing where rows of a, or columns of b, are contiguous: copies `%count` of them for each of `%k` terms,
    `width` to a block, zeros for those from `%there` on. A term's vectors may reach over the next term's place,
    which is written later. Terms are far from each other, where what fetches ahead in the processor stops at the
    end of a page: some are fetched ahead."""
    v, size, lanes = shape.vector, shape.bytes, shape.lanes
    vectors = ceil(width / lanes)
    lines = [
        f"define internal void @{name}({_PACKED}) #0 {{",
        "entry:",
        f"  %ahead = mul i64 %apart, {REFERENCE.ahead_rows}",
        "  br label %term",
        "term:",
        "  %t = phi i64 [ %k, %entry ], [ %left, %term_end ]",
        "  %from_term = phi ptr [ %from, %entry ], [ %from_next, %term_end ]",
        "  %to_term = phi ptr [ %to, %entry ], [ %to_next, %term_end ]",
        "  br label %loop",
        "loop:",
        "  %i = phi i64 [ 0, %term ], [ %i_next, %put ]",
        "  %some = phi ptr [ %from_term, %term ], [ %some_next, %put ]",
        "  %place = phi ptr [ %to_term, %term ], [ %place_next, %put ]",
        "  %rest = sub i64 %there, %i",
        "  %soon = getelementptr i8, ptr %some, i64 %ahead",
    ]
    for line in range(0, width * size, REFERENCE.line_bytes):
        lines += [
            f"  %soon{line} = getelementptr i8, ptr %soon, i64 {line}",
            f"  call void @llvm.prefetch.p0(ptr %soon{line}, i32 0, i32 3, i32 1)",
        ]
    parts = range(vectors)
    lines += [
        *(f"  %x{part} = getelementptr {v}, ptr %some, i64 {part}" for part in parts),
        f"  %is_whole = icmp sge i64 %rest, {vectors * lanes}",
        "  br i1 %is_whole, label %whole, label %edge",
        "whole:",
        *(f"  %w{part} = load {v}, ptr %x{part}, align {size}" for part in parts),
        "  br label %put",
        "edge:",
        f"  %is_less = icmp slt i64 %rest, {width}",
        f"  %of_block = select i1 %is_less, i64 %rest, i64 {width}",
        *_masks(shape, "%of_block", "m", vectors),
        *(f"  %e{part} = {_load(shape, f'%x{part}', f'%m{part}')}" for part in parts),
        "  br label %put",
        "put:",
    ]
    lines += [f"  %v{part} = phi {v} [ %w{part}, %whole ], [ %e{part}, %edge ]" for part in parts]
    for part in parts:
        lines += [
            f"  %y{part} = getelementptr {v}, ptr %place, i64 {part}",
            f"  store {v} %v{part}, ptr %y{part}, align {size}",
        ]
    return "\n".join(
        [
            *lines,
            f"  %i_next = add i64 %i, {width}",
            f"  %some_next = getelementptr i8, ptr %some, i64 {width * size}",
            f"  %place_next = getelementptr i8, ptr %place, i64 {block}",
            "  %more = icmp slt i64 %i_next, %count",
            "  br i1 %more, label %loop, label %term_end",
            "term_end:",
            "  %from_next = getelementptr i8, ptr %from_term, i64 %apart",
            f"  %to_next = getelementptr i8, ptr %to_term, i64 {width * size}",
            "  %left = add i64 %t, -1",
            "  %end = icmp eq i64 %left, 0",
            "  br i1 %end, label %done, label %term",
            "done:",
            "  ret void",
            "}",
        ]
    )


def _transpose(shape: Shape, name: str, width: int, block: int) -> str:
    """Packing where the terms of a row of a, or of a column of b, are contiguous: transposes square tiles of a
    vector's terms, `width` rows or columns to a block. Terms past the last of a tile are zeros, too, which a block
    has room for."""
    v, size, lanes = shape.vector, shape.bytes, shape.lanes
    lines = [
        f"define internal void @{name}({_PACKED}) #0 {{",
        "entry:",
        f"  %apart_blocks = mul i64 %apart, {width}",
        "  br label %block",
        "block:",
        "  %i = phi i64 [ 0, %entry ], [ %i_next, %block_end ]",
        "  %from_block = phi ptr [ %from, %entry ], [ %from_next, %block_end ]",
        "  %to_block = phi ptr [ %to, %entry ], [ %to_next, %block_end ]",
        *(f"  %far{row} = mul i64 %apart, {row}" for row in range(width)),
        *(f"  %begin{row} = getelementptr i8, ptr %from_block, i64 %far{row}" for row in range(width)),
        "  %rest = sub i64 %there, %i",
        f"  %are_rows = icmp sge i64 %rest, {width}",
        "  br label %tile",
        "tile:",
        "  %t = phi i64 [ 0, %block ], [ %t_next, %turn ]",
        "  %place = phi ptr [ %to_block, %block ], [ %place_next, %turn ]",
        "  %left = sub i64 %k, %t",
        f"  %are_terms = icmp sge i64 %left, {lanes}",
        "  %is_whole = and i1 %are_rows, %are_terms",
        *(f"  %x{row} = getelementptr {shape.element}, ptr %begin{row}, i64 %t" for row in range(width)),
        "  br i1 %is_whole, label %whole, label %edge",
        "whole:",
        *(f"  %w{row} = load {v}, ptr %x{row}, align {size}" for row in range(width)),
        "  br label %turn",
        "edge:",
        *_masks(shape, "%left", "terms", 1),
        *(line for row in range(width) for line in _some_terms(shape, row)),
        "  br label %turn",
        "turn:",
        *(f"  %v{lanes}_{row} = phi {v} [ %w{row}, %whole ], [ %e{row}, %edge ]" for row in range(width)),
    ]
    for first in range((width - 1) // lanes * lanes, -1, -lanes):  # the first last: others reach over it
        lines += _transposed_tile(shape, width, first)
    return "\n".join(
        [
            *lines,
            f"  %t_next = add i64 %t, {lanes}",
            f"  %place_next = getelementptr i8, ptr %place, i64 {lanes * width * size}",
            "  %more = icmp slt i64 %t_next, %k",
            "  br i1 %more, label %tile, label %block_end",
            "block_end:",
            f"  %i_next = add i64 %i, {width}",
            "  %from_next = getelementptr i8, ptr %from_block, i64 %apart_blocks",
            f"  %to_next = getelementptr i8, ptr %to_block, i64 {block}",
            "  %blocks_more = icmp slt i64 %i_next, %count",
            "  br i1 %blocks_more, label %block, label %done",
            "done:",
            "  ret void",
            "}",
        ]
    )


def _some_terms(shape: Shape, row: int) -> list[str]:
    """Lines that load what there is of a row's terms, zeros beside."""
    return [
        f"  %is{row} = icmp sgt i64 %rest, {row}",
        f"  %mask{row} = select i1 %is{row}, {shape.mask} %terms0, {shape.mask} zeroinitializer",
        f"  %e{row} = {_load(shape, f'%x{row}', f'%mask{row}')}",
    ]


def _transposed_tile(shape: Shape, width: int, first: int) -> list[str]:
    """Lines that transpose the tile of a block that begins with its row, or column, `first`."""
    v, size, lanes = shape.vector, shape.bytes, shape.lanes
    zero = f"select i1 true, {v} zeroinitializer, {v} zeroinitializer"
    lines = [f"  %v{lanes}_{row} = {zero}" for row in range(max(first, width), first + lanes)]
    step = lanes // 2
    while step:  # exchanges a bit of the number of a vector and that of an element in it
        for row in range(lanes):
            pair = [f"{v} %v{2 * step}_{first + one}" for one in (row & ~step, row | step)]
            wanted = [
                (lane & ~step) + (lanes if lane & step else 0) + (step if row & step else 0)
                for lane in range(lanes)
            ]
            mask = ", ".join(f"i32 {number}" for number in wanted)
            lines.append(
                f"  %v{step}_{first + row} = shufflevector {', '.join(pair)}, <{lanes} x i32> <{mask}>"
            )
        step //= 2
    for term in range(lanes):
        lines += [
            f"  %y{first + term} = getelementptr i8, ptr %place, i64 {(term * width + first) * size}",
            f"  store {v} %v1_{first + term}, ptr %y{first + term}, align {size}",
        ]
    return lines


_PACKED = "ptr noalias %from, i64 %apart, ptr noalias %to, i64 %k, i64 %count, i64 %there"
"""What is packed: from where, bytes from one contiguous row or column to the next, terms, rows or columns with
those that fill up the last block, and those that there are."""


def _tasks(symbol: str, shape: Shape) -> str:
    """The loops over tasks, parts of the terms, blocks of columns and of rows."""
    size, columns, rows = shape.bytes, shape.columns, shape.rows
    fields = "\n".join(
        f"  %at_{name} = getelementptr i64, ptr %job, i64 {number}\n"
        f"  %{name} = load {'ptr' if name in 'abc' else 'i64'}, ptr %at_{name}, align 8"
        for number, name in enumerate(JOB)
    )
    a_row, a_term = (str(size), "%lda") if shape.a_turned else ("%lda", str(size))
    b_column, b_term = ("%ldb", str(size)) if shape.b_turned else (str(size), "%ldb")
    packed_rows = shape.most_rows // rows * shape.block + REFERENCE.line_bytes
    return f"""define void @{symbol}(ptr %job, i64 %low, i64 %high) #0 {{
entry:
  %packed = alloca [{packed_rows} x i8], align 64
  %panel = alloca [{_PANEL * columns * _DEPTH} x {shape.element}], align 64
{fields}
  %up = add i64 %n, {columns - 1}
  %blocks = udiv i64 %up, {columns}
  %deep = add i64 %k, {_DEPTH - 1}
  %parts = udiv i64 %deep, {_DEPTH}
  %in_product = mul i64 %chunks, %panels
  br label %task
task:
  %i = phi i64 [ %low, %entry ], [ %i_next, %task_end ]
  %more = icmp slt i64 %i, %high
  br i1 %more, label %begin, label %done
done:
  ret void
begin:
  %g = udiv i64 %i, %in_product
  %of_product = urem i64 %i, %in_product
  %chunk = udiv i64 %of_product, %panels
  %number = urem i64 %of_product, %panels
  %row_low = mul i64 %chunk, %rows
  %rows_left = sub i64 %m, %row_low
  %is_last = icmp slt i64 %rows_left, %rows
  %there = select i1 %is_last, i64 %rows_left, i64 %rows
  %there_up = add i64 %there, {rows - 1}
  %blocks_of_a = udiv i64 %there_up, {rows}
  %filled_up = mul i64 %blocks_of_a, {rows}
{_part_of("block", "%blocks", "%number", "%panels")}
  %g_a = mul i64 %g, %next_a
  %g_b = mul i64 %g, %next_b
  %g_c = mul i64 %g, %next_c
  %a_of_g = getelementptr i8, ptr %a, i64 %g_a
  %b_of_g = getelementptr i8, ptr %b, i64 %g_b
  %c_of_g = getelementptr i8, ptr %c, i64 %g_c
  %a_far = mul i64 %row_low, {a_row}
  %a_task = getelementptr i8, ptr %a_of_g, i64 %a_far
  %c_far = mul i64 %row_low, %ldc
  %c_task = getelementptr i8, ptr %c_of_g, i64 %c_far
  br label %part
part:
  %p = phi i64 [ 0, %begin ], [ %p_next, %part_end ]
  %first = icmp eq i64 %p, 0
{_part_of("term", "%k", "%p", "%parts")}
  %terms = sub i64 %term_high, %term_low
  %a_part_far = mul i64 %term_low, {a_term}
  %a_part = getelementptr i8, ptr %a_task, i64 %a_part_far
  %b_far = mul i64 %term_low, {b_term}
  %b_part = getelementptr i8, ptr %b_of_g, i64 %b_far
  call void @pack_a(ptr %a_part, i64 %lda, ptr %packed, i64 %terms, i64 %filled_up, i64 %there)
  br label %panel_of_b
panel_of_b:
  %f = phi i64 [ %block_low, %part ], [ %f_next, %panel_end ]
  %f_up = add i64 %f, {_PANEL}
  %is_short = icmp slt i64 %block_high, %f_up
  %f_next = select i1 %is_short, i64 %block_high, i64 %f_up
  %f_blocks = sub i64 %f_next, %f
  %f_columns = mul i64 %f_blocks, {columns}
  %f_column = mul i64 %f, {columns}
  %f_wide = sub i64 %n, %f_column
  %f_far = mul i64 %f_column, {b_column}
  %b_panel = getelementptr i8, ptr %b_part, i64 %f_far
  call void @pack_b(ptr %b_panel, i64 %ldb, ptr %panel, i64 %terms, i64 %f_columns, i64 %f_wide)
  br label %block
block:
  %j = phi i64 [ %f, %panel_of_b ], [ %j_next, %block_end ]
  %b_block = phi ptr [ %panel, %panel_of_b ], [ %b_next, %block_end ]
  %column = mul i64 %j, {columns}
  %wide = sub i64 %n, %column
  %c_block_far = mul i64 %column, {size}
  %c_block = getelementptr i8, ptr %c_task, i64 %c_block_far
  br label %rows_of_block
rows_of_block:
  %r = phi i64 [ 0, %block ], [ %r_next, %rows_of_block ]
  %a_rows = phi ptr [ %packed, %block ], [ %a_next, %rows_of_block ]
  %c_rows = phi ptr [ %c_block, %block ], [ %c_next, %rows_of_block ]
  %tall = sub i64 %there, %r
  call void @block(ptr %a_rows, ptr %b_block, ptr %c_rows, i64 %ldc, i64 %terms, i64 %tall, i64 %wide, i1 %first)
  %a_next = getelementptr i8, ptr %a_rows, i64 {shape.block}
  %c_step = mul i64 %ldc, {rows}
  %c_next = getelementptr i8, ptr %c_rows, i64 %c_step
  %r_next = add i64 %r, {rows}
  %rows_more = icmp slt i64 %r_next, %there
  br i1 %rows_more, label %rows_of_block, label %block_end
block_end:
  %j_next = add i64 %j, 1
  %b_next = getelementptr i8, ptr %b_block, i64 {columns * _DEPTH * size}
  %block_more = icmp slt i64 %j_next, %f_next
  br i1 %block_more, label %block, label %panel_end
panel_end:
  %panel_more = icmp slt i64 %f_next, %block_high
  br i1 %panel_more, label %panel_of_b, label %part_end
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
