"""Kernels of one op that are written straight in LLVM IR: matrix products as calls of OpenBLAS or of a
function that all of them share (products.py), LAPACK's routines (lapack.py), Fourier transforms and scans
as code generated for their shapes, sorts, the greatest elements of rows, Python callbacks and
collectives as calls of the runtime.

The choice was made before, in the IR: a kernel with `lamina.kind = "library"` holds one op and
names its library in `lamina.library`. Here it becomes a function in LLVM IR with the ABI of every
other kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from lamina.backends.cpu.products import product_kernel
from lamina.backends.target import Target
from lamina.dialects.attributes import LIBRARY, string_of
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import CompileError
from lamina.passes.framework.machine import SIZES, Machine
from lamina.passes.kernels.cpu.collectives import collective_kernel
from lamina.passes.kernels.cpu.emit.tasks_text import DECLARATION, pack, run, unpack
from lamina.passes.kernels.cpu.factorisations.lapack import lapack_kernel
from lamina.passes.kernels.cpu.fft.fft import fft_kernel
from lamina.passes.kernels.cpu.scan.recurrence import recurrence_kernel
from lamina.passes.kernels.cpu.scan.scan import scan_kernel
from lamina.passes.kernels.cpu.small_matrices import small_matrices_kernel
from lamina.passes.stablehlo.analysis.facts import PYTHON_CALLBACK, callback_index
from lamina.passes.stablehlo.analysis.gemm import Gemm
from lamina.passes.stablehlo.analysis.lapack import Lapack
from lamina.passes.stablehlo.analysis.product_choice import BLAS, SHARED_PRODUCT
from lamina.passes.stablehlo.analysis.scan_order import Scan
from lamina.passes.stablehlo.analysis.small_matrices import SMALL_MATRICES
from lamina.passes.stablehlo.analysis.sort_order import SortOrder, TopK
from lamina.records import Record

_ROW_MAJOR, _AS_IS, _TRANSPOSED = 101, 111, 112


class _Element(Record):
    """How a BLAS routine takes an element type."""

    letter: str
    llvm: str
    bytes: int

    @property
    def is_complex(self) -> bool:
        return self.letter in "cz"

    def scalar(self, value: float) -> str:
        """A factor as an argument: by value, or by address for complex numbers."""
        if self.is_complex:
            return f"ptr @{'one' if value else 'zero'}"
        return f"{self.llvm} {value:.1f}"


_ELEMENTS = {
    "f32": _Element("s", "float", 4),
    "f64": _Element("d", "double", 8),
    "complex<f32>": _Element("c", "float", 8),
    "complex<f64>": _Element("z", "double", 16),
}


def library_kernel(function: ir.Operation, symbol: str, target: Target) -> tuple[str, int] | None:
    """LLVM IR of a library kernel's function, exporting `symbol`, and the bytes of scratch that it
    needs; None when the kernel is none.

    Raises CompileError when the named library does not do the kernel's op.
    """
    name = string_of(function, LIBRARY)
    if not name:
        return None
    op = function.regions[0].blocks[0].operations[0].operation
    routine = Lapack.of(op)
    emit = _lapack if routine is not None and routine.name == name else _LIBRARIES.get(name)
    if emit is None:
        raise CompileError.at(op, f"the CPU backend has no library {name!r} for this")
    return emit(function, op, symbol, target)


def _fft(function: ir.Operation, fft: ir.Operation, symbol: str, target: Target) -> tuple[str, int]:
    return fft_kernel(fft, symbol, target.vector_bits)


def _scan(
    function: ir.Operation, op: ir.Operation, symbol: str, target: Target
) -> tuple[str, int]:
    scan = Scan.of(op, in_kernel=True)
    if scan is None:
        raise CompileError.at(op, "not a scan along an axis")
    return scan_kernel(scan, symbol, target.vector_bits)


def _recurrence(
    function: ir.Operation, op: ir.Operation, symbol: str, target: Target
) -> tuple[str, int]:
    scan = Scan.recurrence_of(op, in_kernel=True)
    if scan is None:
        raise CompileError.at(op, "not a recurrence along an axis")
    pointers = _Pointers.of(function, op)
    given = (*pointers.operands[:2], pointers.results[1])
    return recurrence_kernel(scan, symbol, pointers.parameters, given, target.vector_bits)


def _lapack(
    function: ir.Operation, op: ir.Operation, symbol: str, target: Target
) -> tuple[str, int]:
    return lapack_kernel(function, op, symbol), 0


def _gemm(
    function: ir.Operation, dot: ir.Operation, symbol: str, target: Target
) -> tuple[str, int]:
    product = Gemm.of(dot) if dot.name == "stablehlo.dot_general" else None
    if product is None:
        raise CompileError.at(dot, "not a matrix product that OpenBLAS can do")
    element = _ELEMENTS[str(dot.results[0].type.element_type)]
    places = {
        argument: number for number, argument in enumerate(function.regions[0].blocks[0].arguments)
    }
    lhs, rhs = (places[operand] for operand in dot.operands)
    count, result = len(places), len(places)
    parameters = ", ".join(f"ptr %p{i}" for i in range(count + 2))
    call = f"scipy_cblas_{element.letter}gemm"
    scalar = "ptr" if element.is_complex else element.llvm
    types = ["i32"] * 6 + [scalar, "ptr", "i32", "ptr", "i32", scalar, "ptr", "i32"]
    declared = f"declare void @{call}({', '.join(types)})\n"
    if element.is_complex:
        for name, value in (("one", 1), ("zero", 0)):
            pair = f"[2 x {element.llvm}] [{element.llvm} {value}.0, {element.llvm} 0.0]"
            declared += f"@{name} = private constant {pair}\n"
    transposes = [_TRANSPOSED if matrix.transposed else _AS_IS for matrix in (product.a, product.b)]

    def one_call(a: str, b: str, c: str) -> str:
        return (
            f"  call void @{call}(i32 {_ROW_MAJOR}, i32 {transposes[0]}, i32 {transposes[1]}, "
            f"i32 {product.m}, i32 {product.n}, i32 {product.k}, {element.scalar(1)}, "
            f"ptr {a}, i32 {product.a.leading}, ptr {b}, i32 {product.b.leading}, "
            f"{element.scalar(0)}, ptr {c}, i32 {product.n})\n"
        )

    batch = prod(product.batch)
    if batch == 1:
        body = one_call(f"%p{lhs}", f"%p{rhs}", f"%p{result}")
        return f"{declared}define void @{symbol}({parameters}) {{\n{body}  ret void\n}}\n", 0
    places_ = (lhs, rhs, result)
    return declared + _batched(product, element, symbol, parameters, places_, one_call, target.machine), 0


def _batched(
    product: Gemm,
    element: _Element,
    symbol: str,
    parameters: str,
    places: tuple[int, int, int],
    one_call: Callable[[str, str, str], str],
    machine: Machine,
) -> str:
    """One call for each batch position; positions are the tasks of a parallel loop when there is
    work enough."""
    batch = prod(product.batch)
    flops = 2 * product.m * product.n * product.k
    task_flops = machine.task_ns * machine.rate("f64" if element.bytes == 8 else "f32", "library", SIZES[0])
    grain = max(1, -(-int(task_flops) // flops))
    address = _addresses(product, element)
    lines = "\n".join
    return f"""{DECLARATION}
define internal void @task(ptr %ctx, i64 %low, i64 %high) {{
entry:
{lines(unpack(("%a0", "%b0", "%c0")))}
  br label %head
head:
  %i = phi i64 [ %low, %entry ], [ %next, %body ]
  %more = icmp slt i64 %i, %high
  br i1 %more, label %body, label %done
body:
{address}{one_call("%a", "%b", "%c")}  %next = add i64 %i, 1
  br label %head
done:
  ret void
}}
define void @{symbol}({parameters}) {{
{lines(pack([f"%p{place}" for place in places]))}
{run("task", batch, grain)}
  ret void
}}
"""


def _addresses(product: Gemm, element: _Element) -> str:
    """`%a`, `%b`, `%c` for batch position `%i`, counted row by row over the batch dimensions."""
    lines: list[str] = []
    rest = "%i"
    positions: list[str] = []
    for axis in reversed(range(len(product.batch))):
        size = product.batch[axis]
        lines.append(f"  %d{axis} = urem i64 {rest}, {size}")
        lines.append(f"  %r{axis} = udiv i64 {rest}, {size}")
        positions.insert(0, f"%d{axis}")
        rest = f"%r{axis}"
    for name, strides in (("a", product.a.batch_strides), ("b", product.b.batch_strides)):
        total = "0"
        for axis, stride in enumerate(strides):
            lines.append(f"  %{name}m{axis} = mul i64 {positions[axis]}, {stride * element.bytes}")
            lines.append(f"  %{name}s{axis} = add i64 {total}, %{name}m{axis}")
            total = f"%{name}s{axis}"
        lines.append(f"  %{name} = getelementptr i8, ptr %{name}0, i64 {total}")
    lines.append(f"  %ci = mul i64 %i, {product.m * product.n * element.bytes}")
    lines.append("  %c = getelementptr i8, ptr %c0, i64 %ci")
    return "\n".join(lines) + "\n"


class _Pointers(Record):
    """The addresses of an op's operands and results in its kernel; null for a result that nobody
    reads."""

    parameters: str
    operands: list[str]
    results: list[str]

    @classmethod
    def of(cls, function: ir.Operation, op: ir.Operation) -> _Pointers:
        block = function.regions[0].blocks[0]
        places = {argument: f"%p{number}" for number, argument in enumerate(block.arguments)}
        returned = list(block.operations[len(block.operations) - 1].operation.operands)
        stored = {value: f"%p{len(places) + number}" for number, value in enumerate(returned)}
        return cls(
            ", ".join(f"ptr %p{i}" for i in range(len(places) + len(returned) + 1)),
            [places[operand] for operand in op.operands],
            [stored.get(result, "null") for result in op.results],
        )

    def arrays(self) -> str:
        """Instructions that put them into the arrays `%operands` and `%results`."""
        lines: list[str] = []
        for name, given in (("operands", self.operands), ("results", self.results)):
            lines.append(f"  %{name} = alloca [{max(len(given), 1)} x ptr]")
            for number, pointer in enumerate(given):
                lines.append(f"  %{name}{number} = getelementptr ptr, ptr %{name}, i64 {number}")
                lines.append(f"  store ptr {pointer}, ptr %{name}{number}")
        return "\n".join(lines)


def _python_callback(
    function: ir.Operation, call: ir.Operation, symbol: str, target: Target
) -> tuple[str, int]:
    """Hands the addresses of arguments and results to the runtime, which calls Python."""
    pointers = _Pointers.of(function, call)
    index = callback_index(call)
    return (
        "declare void @lamina_python_callback(i64, ptr, ptr)\n"
        f"define void @{symbol}({pointers.parameters}) {{\n{pointers.arrays()}\n"
        f"  call void @lamina_python_callback(i64 {index}, ptr %operands, ptr %results)\n"
        "  ret void\n}\n",
        0,
    )


def _sort(
    function: ir.Operation, sort: ir.Operation, symbol: str, target: Target
) -> tuple[str, int]:
    """The runtime's radix sort, with what it needs to know as a constant."""
    order = SortOrder.of(sort) if sort.name == "stablehlo.sort" else None
    if order is None:
        raise CompileError.at(sort, "not a sort by the order of numbers")
    pointers = _Pointers.of(function, sort)
    keys = [(key.operand, key.kind, int(key.descending)) for key in order.keys]
    plan = _words(
        order.outer, order.length, order.inner, len(order.widths), len(keys), *order.widths,
        *(word for key in keys for word in key),
    )  # fmt: skip
    return (
        f"declare void @lamina_sort(ptr, ptr, ptr)\n@plan = private constant {plan}\n"
        f"define void @{symbol}({pointers.parameters}) {{\n{pointers.arrays()}\n"
        "  call void @lamina_sort(ptr @plan, ptr %operands, ptr %results)\n  ret void\n}\n",
        0,
    )


def _top_k(
    function: ir.Operation, op: ir.Operation, symbol: str, target: Target
) -> tuple[str, int]:
    """The runtime's search for the greatest elements of rows."""
    top = TopK.of(op) if op.name == "chlo.top_k" else None
    if top is None:
        raise CompileError.at(op, "not the greatest of some numbers")
    pointers = _Pointers.of(function, op)
    plan = _words(top.rows, top.length, top.count, top.width, top.kind)
    given = ", ".join(f"ptr {pointer}" for pointer in (*pointers.operands, *pointers.results))
    return (
        f"declare void @lamina_top_k(ptr, ptr, ptr, ptr)\n@plan = private constant {plan}\n"
        f"define void @{symbol}({pointers.parameters}) {{\n"
        f"  call void @lamina_top_k(ptr @plan, {given})\n  ret void\n}}\n",
        0,
    )


def _words(*words: int) -> str:
    """Numbers as a constant array."""
    return f"[{len(words)} x i64] [{', '.join(f'i64 {word}' for word in words)}]"


_LIBRARIES: dict[str, Callable[[ir.Operation, ir.Operation, str, Target], tuple[str, int]]] = {
    BLAS: _gemm,
    SHARED_PRODUCT: product_kernel,
    "lamina.fft": _fft,
    "lamina.scan": _scan,
    "lamina.recurrence": _recurrence,
    SMALL_MATRICES: lambda function, op, symbol, target: small_matrices_kernel(
        function, symbol, target.vector_bits
    ),
    PYTHON_CALLBACK: _python_callback,
    "lamina.sort": _sort,
    "lamina.top_k": _top_k,
    "lamina.collective": lambda function, op, symbol, target: (
        collective_kernel(function, op, symbol),
        0,
    ),
}
WRITTEN_IN_VECTORS = frozenset(("lamina.fft", "lamina.recurrence", "lamina.scan"))
"""Libraries whose kernels are loops over vectors as they are written: LLVM would take as long again to look for
others."""
