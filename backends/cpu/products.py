"""Matrix products by a function that all of a type and order of factors share, whose code is in product_code.py: a
kernel is a call of it.

It is compiled when the first program of a process needs it, kept in the store as kernels are, and is an
object of each program that calls it.
"""

from __future__ import annotations

import functools
import hashlib
import re
from math import prod

from lamina.backends.llvm_codegen import OF_VECTORS, TargetMachine, emit
from lamina.backends.target import Target
from lamina.dialects.types import element_name
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import CompileError
from lamina.passes.kernels.cpu.emit.tasks_text import DECLARATION
from lamina.passes.kernels.cpu.gemm.product_code import JOB, product_code
from lamina.passes.kernels.cpu.gemm.product_shape import SHARED, Shape, shared_symbol, task_limits
from lamina.passes.llvm.call_task_runner import RUNNER
from lamina.passes.stablehlo.analysis.gemm import Gemm

_BITS = {"f32": 32, "f64": 64}

_CALLED = re.compile(rf"@{SHARED}(f32|f64)_([nt])([nt])\b")

_objects: dict[str, bytes] = {}


def product_kernel(
    function: ir.Operation, dot: ir.Operation, symbol: str, target: Target
) -> tuple[str, int]:
    """LLVM IR of a kernel that is one product, exporting `symbol`, and the bytes of scratch that it needs.
    Raises CompileError for a product that the shared function does not do."""
    product = Gemm.of(dot) if dot.name == "stablehlo.dot_general" else None
    element = element_name(dot.results[0].type)
    if product is None or element not in _BITS:
        raise CompileError.at(dot, "not a product of matrices of f32 or f64 whose rows or columns are contiguous")
    shape = _shape(target, element, product.a.transposed, product.b.transposed)
    batch, machine = prod(product.batch), target.machine
    ns = batch * product.m * product.n * product.k * machine.multiply_add_ns(element)
    lda, ldb = product.a.leading * shape.bytes, product.b.leading * shape.bytes
    in_place = shape.in_place(machine, lda, ldb, product.k, product.n)
    rows, chunks, panels = shape.division(product.m, product.n, *task_limits(machine, ns, batch), in_place)
    next_a, next_b = (product.batch_stride(matrix) for matrix in (product.a, product.b))
    if next_a is None or next_b is None:
        raise CompileError.at(dot, "the matrices of the batch don't lie at one distance from each other")
    tasks = batch * chunks * panels
    grain = max(1, int(machine.task_ns * tasks / ns) if ns >= machine.parallel_ns else tasks)
    places = {value: f"%p{number}" for number, value in enumerate(function.regions[0].blocks[0].arguments)}
    count = len(places)
    lhs, rhs = (places[operand] for operand in dot.operands)
    words = dict(
        a=f"ptr {lhs}", b=f"ptr {rhs}", c=f"ptr %p{count}",
        lda=f"i64 {lda}", ldb=f"i64 {ldb}", a_in_place=f"i64 {int(in_place[0])}", b_in_place=f"i64 {int(in_place[1])}",
        ldc=f"i64 {product.n * shape.bytes}", m=f"i64 {product.m}", n=f"i64 {product.n}", k=f"i64 {product.k}",
        rows=f"i64 {rows}", chunks=f"i64 {chunks}", panels=f"i64 {panels}",
        next_a=f"i64 {next_a * shape.bytes}", next_b=f"i64 {next_b * shape.bytes}",
        next_c=f"i64 {product.m * product.n * shape.bytes}", adds="i64 0",
    )  # fmt: skip
    lines = [f"  %job = alloca [{len(JOB)} x i64], align 8"]
    for number, name in enumerate(JOB):
        lines.append(f"  %at_{name} = getelementptr i64, ptr %job, i64 {number}")
        lines.append(f"  store {words[name]}, ptr %at_{name}")
    shared = _symbol(target, element, product.a.transposed, product.b.transposed)
    parameters = ", ".join(f"ptr %p{number}" for number in range(count + 2))
    text = [
        DECLARATION,
        f"declare void @{shared}(ptr, i64, i64)",
        f"define void @{symbol}({parameters}) {{",
        *lines,
        f"  call void @{RUNNER}(ptr @{shared}, ptr %job, i64 {tasks}, i64 {grain})",
        "  ret void",
        "}",
        "",
    ]
    return "\n".join(text), 0


def with_shared(text: str, target: Target) -> str:
    """A kernel's LLVM IR with the names that such functions have for this target."""
    if SHARED not in text:
        return text
    return _CALLED.sub(lambda found: "@" + _symbol(target, found[1], found[2] == "t", found[3] == "t"), text)


def is_shared(symbol: str) -> bool:
    """Whether a symbol that kernels import is a function of this module."""
    return symbol.startswith(SHARED)


def shared_object(symbol: str, target: Target) -> bytes:
    """The object file of such a function, compiled once in a process for each target."""
    found = _objects.get(symbol)
    if found is None:  # without a lock, which a fork might find taken: two threads may make the same
        element, order, _ = symbol.removeprefix(SHARED).split("_")
        text = product_code(symbol, target.vector_bits, _BITS[element], *(letter == "t" for letter in order))
        machine = TargetMachine(target.triple, target.cpu, target.features)
        found = _objects[symbol] = emit(text, machine, OF_VECTORS).object
    return found


@functools.lru_cache(32)
def _shape(target: Target, element: str, a_turned: bool, b_turned: bool) -> Shape:
    return Shape(target.vector_bits, _BITS[element], a_turned, b_turned)


@functools.lru_cache(32)
def _symbol(target: Target, element: str, a_turned: bool, b_turned: bool) -> str:
    """The function's name, which says all that decides its code."""
    code = product_code("product", target.vector_bits, _BITS[element], a_turned, b_turned)
    digest = hashlib.sha256(repr((target, code, OF_VECTORS)).encode()).hexdigest()
    return f"{shared_symbol(element, a_turned, b_turned)}_{digest[:16]}"
