"""One function for all matrix products of a type and order of factors, in LLVM IR: sizes are given when it is called.

    c[g, m, n] = sum over k of a[g, m, k] b[g, k, n]         rows of c are contiguous; those of a and b, or
                                                             their columns, which is another function

It is the scheme of BLIS (Van Zee and van de Geijn, ACM TOMS 41, 2015). A task has some rows and some blocks of
columns. For a part of the terms at a time it packs its rows of a, which then stay in the second cache, and in
turn a panel of b, of which a block of columns stays in the first, and multiplies the one by the other: a block of
sums is in vector registers, as in `passes/kernels/cpu/gemm/register_blocks.py`. Factors whose lines stay in the first
cache as they are (product_shape.py) are not packed: blocks are read where they lie, but for those at the edges, which
packing fills up, so that only stores of sums are masked. Where half of a block's rows, or one vector of its columns,
are all that there is, there are blocks of so many.

The words of a job, which its tasks share: see `JOB`.
"""

from __future__ import annotations

import functools

from lamina.passes.framework.machine import REFERENCE
from lamina.passes.kernels.cpu.gemm.product_block import block_code, block_name
from lamina.passes.kernels.cpu.gemm.product_packing import copy_code, transpose_code
from lamina.passes.kernels.cpu.gemm.product_shape import DEPTH, PANEL, VECTORS, Shape

JOB = (
    "a", "lda", "b", "ldb", "c", "ldc", "m", "n", "k", "rows", "chunks", "panels", "next_a", "next_b", "next_c",
    "a_in_place", "b_in_place", "adds",
)  # fmt: skip
"""Pointers, and bytes from one contiguous row or column to the next; the sizes; rows of a task; how many tasks the
rows are divided into, and the blocks of columns; bytes from one product of a batch to the next; which factors are read
in place, 0 or 1; 1 where products are added to what c holds."""


@functools.lru_cache(16)
def product_code(symbol: str, vector_bits: int, bits: int, a_turned: bool = False, b_turned: bool = False) -> str:
    """The module that defines `void @symbol(ptr %job, i64 %low, i64 %high)`: some tasks of a job."""
    shape = Shape(vector_bits, bits, a_turned, b_turned)
    v, mask = shape.vector, shape.mask
    block_of_b = shape.columns * DEPTH * shape.bytes
    return "\n".join(
        [
            f"declare {v} @llvm.masked.load.{shape.suffix}.p0(ptr, {mask}, {v})",
            f"declare void @llvm.masked.store.{shape.suffix}.p0({v}, ptr, {mask})",
            "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)",
            f"declare {v} @llvm.fmuladd.{shape.suffix}({v}, {v}, {v})",
            *(block_code(shape, rows, vectors) for rows in shape.heights for vectors in (VECTORS, 1)),
            (copy_code if a_turned else transpose_code)(shape, "pack_a", shape.rows, shape.block),
            (transpose_code if b_turned else copy_code)(shape, "pack_b", shape.columns, block_of_b),
            _tasks(symbol, shape),
            f'attributes #0 = {{ noinline nounwind "prefer-vector-width"="{vector_bits}" }}',
            "",
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
    a_row, a_term = (str(size), "%lda") if shape.a_turned else ("%lda", str(size))
    b_column, b_term = ("%ldb", str(size)) if shape.b_turned else (str(size), "%ldb")
    half = shape.heights[1]
    of_c = "ptr %c_rows, i64 %ldc, i64 %terms, i64 %tall, i64 %wide, i1 %first"
    packed_rows = shape.most_rows // rows * shape.block + REFERENCE.line_bytes
    return f"""define void @{symbol}(ptr %job, i64 %low, i64 %high) #0 {{
entry:
  %packed = alloca [{packed_rows} x i8], align 64
  %panel = alloca [{PANEL * columns * DEPTH} x {shape.element}], align 64
{fields}
  %up = add i64 %n, {columns - 1}
  %blocks = udiv i64 %up, {columns}
  %whole_blocks = udiv i64 %n, {columns}
  %read_b = icmp ne i64 %b_in_place, 0
  %read_blocks = select i1 %read_b, i64 %whole_blocks, i64 0
  %read_a = icmp ne i64 %a_in_place, 0
  %deep = add i64 %k, {DEPTH - 1}
  %parts = udiv i64 %deep, {DEPTH}
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
  %whole_rows = udiv i64 %there, {rows}
  %read_rows_of_a = mul i64 %whole_rows, {rows}
  %read_rows = select i1 %read_a, i64 %read_rows_of_a, i64 0
  %packed_there = sub i64 %there, %read_rows
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
  %parts_before = or i64 %p, %adds
  %first = icmp eq i64 %parts_before, 0
{_part_of("term", "%k", "%p", "%parts")}
  %terms = sub i64 %term_high, %term_low
  %a_part_far = mul i64 %term_low, {a_term}
  %a_part = getelementptr i8, ptr %a_task, i64 %a_part_far
  %b_far = mul i64 %term_low, {b_term}
  %b_part = getelementptr i8, ptr %b_of_g, i64 %b_far
  %some_a = icmp sgt i64 %packed_there, 0
  br i1 %some_a, label %packing_a, label %panel_of_b
packing_a:
  %a_rest_far = mul i64 %read_rows, {a_row}
  %a_rest = getelementptr i8, ptr %a_part, i64 %a_rest_far
  call void @pack_a(ptr %a_rest, i64 %lda, ptr %packed, i64 %terms, i64 %packed_there, i64 %packed_there)
  br label %panel_of_b
panel_of_b:
  %f = phi i64 [ %block_low, %part ], [ %block_low, %packing_a ], [ %f_next, %panel_end ]
  %f_up = add i64 %f, {PANEL}
  %is_short = icmp slt i64 %block_high, %f_up
  %f_next = select i1 %is_short, i64 %block_high, i64 %f_up
  %starts_read = icmp slt i64 %f, %read_blocks
  %f_packed = select i1 %starts_read, i64 %read_blocks, i64 %f
  %some_b = icmp slt i64 %f_packed, %f_next
  br i1 %some_b, label %packing_b, label %panel_blocks
packing_b:
  %f_blocks = sub i64 %f_next, %f_packed
  %f_columns = mul i64 %f_blocks, {columns}
  %f_column = mul i64 %f_packed, {columns}
  %f_wide = sub i64 %n, %f_column
  %f_far = mul i64 %f_column, {b_column}
  %b_panel = getelementptr i8, ptr %b_part, i64 %f_far
  call void @pack_b(ptr %b_panel, i64 %ldb, ptr %panel, i64 %terms, i64 %f_columns, i64 %f_wide)
  br label %panel_blocks
panel_blocks:
  br label %block
block:
  %j = phi i64 [ %f, %panel_blocks ], [ %j_next, %block_end ]
  %column = mul i64 %j, {columns}
  %wide = sub i64 %n, %column
  %c_block_far = mul i64 %column, {size}
  %c_block = getelementptr i8, ptr %c_task, i64 %c_block_far
  %reads_b = icmp slt i64 %j, %read_blocks
  %b_read_far = mul i64 %column, {b_column}
  %b_read = getelementptr i8, ptr %b_part, i64 %b_read_far
  %j_of_panel = sub i64 %j, %f_packed
  %b_packed_far = mul i64 %j_of_panel, {columns * DEPTH * size}
  %b_packed = getelementptr i8, ptr %panel, i64 %b_packed_far
  %b_block = select i1 %reads_b, ptr %b_read, ptr %b_packed
  %b_step = select i1 %reads_b, i64 %ldb, i64 {columns * size}
  br label %rows_of_block
rows_of_block:
  %r = phi i64 [ 0, %block ], [ %r_next, %rows_of_block ]
  %c_rows = phi ptr [ %c_block, %block ], [ %c_next, %rows_of_block ]
  %tall = sub i64 %there, %r
  %reads_a = icmp slt i64 %r, %read_rows
  %a_read_far = mul i64 %r, {a_row}
  %a_read = getelementptr i8, ptr %a_part, i64 %a_read_far
  %r_packed = sub i64 %r, %read_rows
  %block_of_a = udiv i64 %r_packed, {rows}
  %a_packed_far = mul i64 %block_of_a, {shape.block}
  %a_packed = getelementptr i8, ptr %packed, i64 %a_packed_far
  %a_rows = select i1 %reads_a, ptr %a_read, ptr %a_packed
  %a_next_row = select i1 %reads_a, i64 {a_row}, i64 {size}
  %a_next_term = select i1 %reads_a, i64 {a_term}, i64 {rows * size}
  %is_low = icmp sle i64 %tall, {half}
  %is_narrow = icmp sle i64 %wide, {shape.lanes}
  %of_vectors = select i1 %is_low, ptr @{block_name(half, VECTORS)}, ptr @{block_name(rows, VECTORS)}
  %of_one = select i1 %is_low, ptr @{block_name(half, 1)}, ptr @{block_name(rows, 1)}
  %kind = select i1 %is_narrow, ptr %of_one, ptr %of_vectors
  call void %kind(ptr %a_rows, i64 %a_next_row, i64 %a_next_term, ptr %b_block, i64 %b_step, {of_c})
  %c_step = mul i64 %ldc, {rows}
  %c_next = getelementptr i8, ptr %c_rows, i64 %c_step
  %r_next = add i64 %r, {rows}
  %rows_more = icmp slt i64 %r_next, %there
  br i1 %rows_more, label %rows_of_block, label %block_end
block_end:
  %j_next = add i64 %j, 1
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
