"""Kernels that are LAPACK's: LLVM IR that calls the runtime's loop over a batch of matrices.

The loop (runtime/src/lapack_*.cpp) is given the sizes, the addresses of LAPACK's routines and the
arrays. A result that nobody reads is a null pointer.
"""

from __future__ import annotations

from collections.abc import Sequence

from lamina.dialects.attributes import updated_arguments
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import CompileError
from lamina.passes.framework.machine_attribute import machine_of
from lamina.passes.stablehlo.analysis.lapack import OWN, Lapack

_SIZES, _ROUTINES = 6, 3  # of LapackCall in runtime/src/cpu/lapack.h

# Where the names for complex numbers are not those for real ones.
_COMPLEX_NAMES = {"orgqr": "ungqr", "ormqr": "unmqr", "sytrd": "hetrd", "syevd": "heevd"}


def lapack_kernel(function: ir.Operation, op: ir.Operation, symbol: str) -> str:
    """LLVM IR of a kernel that holds one op which a routine does."""
    routine = Lapack.of(op)
    if routine is None:
        raise CompileError.at(op, "not what a routine of LAPACK does")
    block = function.regions[0].blocks[0]
    places = {argument: number for number, argument in enumerate(block.arguments)}
    returned = list(block.operations[len(block.operations) - 1].operands)
    over = updated_arguments(function)  # by result; of those there is one parameter
    own = [number for number in range(len(returned)) if number not in over]
    place = over | {number: len(places) + at for at, number in enumerate(own)}
    stored = {value: place[number] for number, value in enumerate(returned)}
    given = [f"%p{places[value]}" for value in op.operands]
    results = [f"%p{stored[value]}" if value in stored else "null" for value in op.results]
    parameters = ", ".join(f"ptr %p{i}" for i in range(len(places) + len(own) + 1))
    kernel = f"lamina_lapack_{routine.routine}_{routine.letter}"
    called = [] if routine.routine in OWN else [_symbol(routine)]
    machine = machine_of(op)
    grain = max(1, -(-machine.task_ns * 1000 // (machine.scalar_ps * max(1, routine.work))))
    return "".join(
        (
            f"declare void @{kernel}(ptr, ptr, ptr)\n",
            *(f"declare void @{name}()\n" for name in called),
            _constant(routine, grain, called),
            f"define void @{symbol}({parameters}) {{\n",
            _table("in", given),
            _table("out", results),
            f"  call void @{kernel}(ptr @call, ptr %in, ptr %out)\n  ret void\n}}\n",
        )
    )


def _symbol(routine: Lapack) -> str:
    if routine.routine == "trsm":
        return f"scipy_cblas_{routine.letter}trsm"
    name = routine.routine
    if routine.letter in "cz":
        name = _COMPLEX_NAMES.get(name, name)
    return f"scipy_{routine.letter}{name}_"


def _constant(routine: Lapack, grain: int, called: Sequence[str]) -> str:
    sizes = [*routine.sizes, *[0] * (_SIZES - len(routine.sizes))]
    routines = [*(f"ptr @{name}" for name in called), *["ptr null"] * (_ROUTINES - len(called))]
    type_ = f"{{ i64, i64, [{_SIZES} x i64], [{_ROUTINES} x ptr] }}"
    return (
        f"@call = private constant {type_} {{ i64 {routine.batch}, i64 {grain}, [{_SIZES} x i64] "
        f"[{', '.join(f'i64 {size}' for size in sizes)}], [{_ROUTINES} x ptr] "
        f"[{', '.join(routines)}] }}\n"
    )


def _table(name: str, pointers: Sequence[str]) -> str:
    lines = [f"  %{name} = alloca [{len(pointers)} x ptr]\n"]
    for i, pointer in enumerate(pointers):
        lines.append(f"  %{name}{i} = getelementptr ptr, ptr %{name}, i64 {i}\n")
        lines.append(f"  store ptr {pointer}, ptr %{name}{i}\n")
    return "".join(lines)
