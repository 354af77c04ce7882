"""The innermost loop of the product that all products of a type share, in LLVM IR: a block of sums in vector registers,
whose rows of a and terms of b are any distance apart, packed or where the factors lie."""

from __future__ import annotations

from lamina.passes.kernels.cpu.gemm.product_shape import VECTORS, Shape
from lamina.passes.kernels.cpu.gemm.product_vectors import load, masks


def block_name(rows: int, vectors: int) -> str:
    """The function's name."""
    return f"block{rows}x{vectors}"


def block_code(shape: Shape, rows: int, vectors: int) -> str:
    """A block of sums: those of `%k` terms, and what c holds if they are not the first. Of the block's rows there are
    `%high` in c, of its columns `%wide`: if not all, sums go through memory, so that each row is stored by the same
    masks."""
    v, size, lanes = shape.vector, shape.bytes, shape.lanes
    places = [(row, part) for row in range(rows) for part in range(vectors)]
    lines = [
        f"define internal void @{block_name(rows, vectors)}({_BLOCK}) #0 {{",
        "entry:",
        f"  %tile = alloca [{rows * vectors} x {v}], align 64",
        *(f"  %odd{n} = mul i64 %a_row, {n}" for n in range(1, rows, 2)),
        "  %c0 = getelementptr i8, ptr %c, i64 0",
        *(f"  %c{row} = getelementptr i8, ptr %c{row - 1}, i64 %ldc" for row in range(1, rows)),
        *(f"  %p{row}_{part} = getelementptr {v}, ptr %c{row}, i64 {part}" for row, part in places),
        *(f"  call void @llvm.prefetch.p0(ptr %p{row}_0, i32 1, i32 3, i32 1)" for row in range(rows)),
        "  br label %loop",
        "loop:",
        "  %t = phi i64 [ %k, %entry ], [ %left, %loop ]",
        "  %at = phi ptr [ %a, %entry ], [ %a_next, %loop ]",
        "  %bt = phi ptr [ %b, %entry ], [ %b_next, %loop ]",
        *(f"  %s{r}_{p} = phi {v} [ zeroinitializer, %entry ], [ %n{r}_{p}, %loop ]" for r, p in places),
    ]
    for part in range(vectors):
        lines += [
            f"  %q{part} = getelementptr {v}, ptr %bt, i64 {part}",
            f"  %b{part} = load {v}, ptr %q{part}, align {size}",
        ]
    for row in range(rows):
        lines += [
            f"  %x{row} = {_row_of_a(row)}",
            f"  %e{row} = load {shape.element}, ptr %x{row}, align {size}",
            f"  %f{row} = insertelement {v} poison, {shape.element} %e{row}, i64 0",
            f"  %g{row} = shufflevector {v} %f{row}, {v} poison, <{lanes} x i32> zeroinitializer",
        ]
        lines += [
            f"  %n{row}_{part} = call {v} @llvm.fmuladd.{shape.suffix}({v} %g{row}, {v} %b{part}, {v} %s{row}_{part})"
            for part in range(vectors)
        ]
    lines += [
        "  %a_next = getelementptr i8, ptr %at, i64 %a_term",
        "  %b_next = getelementptr i8, ptr %bt, i64 %b_term",
        "  %left = add i64 %t, -1",
        "  %end = icmp eq i64 %left, 0",
        "  br i1 %end, label %sums, label %loop",
        "sums:",
        f"  %tall = icmp sge i64 %high, {rows}",
    ]
    if (rows, vectors) == (shape.rows, VECTORS):
        lines += _whole_block(shape, places)
    else:
        lines.append("  br label %edge")
    lines += ["edge:", *masks(shape, "%wide", "m", vectors)]
    for number, (r, p) in enumerate(places):
        lines += [
            f"  %u{r}_{p} = getelementptr {v}, ptr %tile, i64 {number}",
            f"  store {v} %n{r}_{p}, ptr %u{r}_{p}, align 64",
        ]
    lines += [
        f"  %short = select i1 %tall, i64 {rows}, i64 %high",
        "  br label %row",
        "row:",
        "  %r = phi i64 [ 0, %edge ], [ %r_next, %put ]",
        "  %from = phi ptr [ %tile, %edge ], [ %from_next, %put ]",
        "  %to = phi ptr [ %c, %edge ], [ %to_next, %put ]",
    ]
    for p in range(vectors):
        lines += [
            f"  %from{p} = getelementptr {v}, ptr %from, i64 {p}",
            f"  %to{p} = getelementptr {v}, ptr %to, i64 {p}",
            f"  %sum{p} = load {v}, ptr %from{p}, align 64",
        ]
    lines += ["  br i1 %first, label %put, label %more", "more:"]
    for p in range(vectors):
        lines += [f"  %old{p} = {load(shape, f'%to{p}', f'%m{p}')}", f"  %both{p} = fadd {v} %old{p}, %sum{p}"]
    lines += ["  br label %put", "put:"]
    lines += [f"  %out{p} = phi {v} [ %sum{p}, %row ], [ %both{p}, %more ]" for p in range(vectors)]
    lines += [
        f"  call void @llvm.masked.store.{shape.suffix}.p0({v} %out{p}, ptr align {size} %to{p}, {shape.mask} %m{p})"
        for p in range(vectors)
    ]
    return "\n".join(
        [
            *lines,
            f"  %from_next = getelementptr {v}, ptr %from, i64 {vectors}",
            "  %to_next = getelementptr i8, ptr %to, i64 %ldc",
            "  %r_next = add i64 %r, 1",
            "  %rows_more = icmp slt i64 %r_next, %short",
            "  br i1 %rows_more, label %row, label %done",
            "done:",
            "  ret void",
            "}",
        ]
    )


def _whole_block(shape: Shape, places: list[tuple[int, int]]) -> list[str]:
    """Lines that store a block of which all rows and columns are in c."""
    v, size = shape.vector, shape.bytes
    lines = [
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
    return [*lines, "  ret void"]


_BLOCK = (
    "ptr noalias %a, i64 %a_row, i64 %a_term, ptr noalias %b, i64 %b_term, ptr noalias %c, i64 %ldc, i64 %k, "
    "i64 %high, i64 %wide, i1 %first"
)


def _row_of_a(row: int) -> str:
    """The address of a row of a block: an odd number of rows from the first times 1, 2, 4 or 8, as x86 adds them
    up, so that few registers hold all rows."""
    if row == 0:
        return "getelementptr i8, ptr %at, i64 0"
    times = row & -row
    if times > 8:
        raise ValueError(row)
    return f"getelementptr i{8 * times}, ptr %at, i64 %odd{row // times}"
