"""Packing of blocks of factors for the product that all products of a type share, in LLVM IR."""

from __future__ import annotations

from math import ceil

from lamina.passes.framework.machine import REFERENCE
from lamina.passes.kernels.cpu.gemm.product_shape import Shape
from lamina.passes.kernels.cpu.gemm.product_vectors import load, masks


def copy_code(shape: Shape, name: str, width: int, block: int) -> str:
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
        *masks(shape, "%of_block", "m", vectors),
        *(f"  %e{part} = {load(shape, f'%x{part}', f'%m{part}')}" for part in parts),
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


def transpose_code(shape: Shape, name: str, width: int, block: int) -> str:
    """Packing where the terms of a row of a, or of a column of b, are contiguous: transposes square tiles of a
    vector's terms, `width` rows or columns to a block. Those past the last are the last again, whose sums nobody
    stores; terms past the last of a tile are zeros, which a block has room for and nobody reads."""
    size, lanes = shape.bytes, shape.lanes
    lines = [
        f"define internal void @{name}({_PACKED}) #0 {{",
        "entry:",
        f"  %apart_blocks = mul i64 %apart, {width}",
        "  br label %block",
        "block:",
        "  %i = phi i64 [ 0, %entry ], [ %i_next, %block_end ]",
        "  %from_block = phi ptr [ %from, %entry ], [ %from_next, %block_end ]",
        "  %to_block = phi ptr [ %to, %entry ], [ %to_next, %block_end ]",
        "  %rest = sub i64 %there, %i",
        "  %last = add i64 %rest, -1",
    ]
    for row in range(width):
        lines += [
            f"  %is{row} = icmp sgt i64 %rest, {row}",
            f"  %row{row} = select i1 %is{row}, i64 {row}, i64 %last",
            f"  %far{row} = mul i64 %apart, %row{row}",
            f"  %begin{row} = getelementptr i8, ptr %from_block, i64 %far{row}",
        ]
    lines += [
        "  br label %tile",
        "tile:",
        "  %t = phi i64 [ 0, %block ], [ %t_next, %tile ]",
        "  %place = phi ptr [ %to_block, %block ], [ %place_next, %tile ]",
        "  %left = sub i64 %k, %t",
        *masks(shape, "%left", "terms", 1),
    ]
    for row in range(width):
        lines += [
            f"  %x{row} = getelementptr {shape.element}, ptr %begin{row}, i64 %t",
            f"  %v{lanes}_{row} = {load(shape, f'%x{row}', '%terms0')}",
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
"""What is packed: from where, bytes from one contiguous row or column to the next, terms, rows or columns, of which
the last block need not be full, and those that there are from here on, which may be fewer or more."""
