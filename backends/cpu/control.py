"""A loop or branch that is one kernel: its own small program, in one function.

The kernel's function is fused and planned like a program. Its small buffers go on the stack, where
LLVM turns scalars and short arrays into registers; the kernels in it are inlined. So a step makes
no calls, and what it reads it finds in registers or in the first-level cache.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from lamina.backends.control_program import as_program, bound_by_arguments, copies_results
from lamina.backends.cpu.generate import generate
from lamina.backends.cpu.libraries import library_kernel
from lamina.backends.cpu.program_text import FAILED, ProgramText
from lamina.backends.lowering import run_pipeline
from lamina.backends.pipelines import CPU_CONTROL, CPU_CONTROL_VECTORS, CPU_LANES, KERNEL_PLACES
from lamina.backends.planned import is_scalar, kernels_of, main_of
from lamina.backends.target import Target
from lamina.dialects.attributes import (
    ALIAS_OF,
    ARENA_BYTES,
    ARGUMENTS,
    LANES,
    MATRIX_PRODUCTS,
    OWN_BYTES,
    integer_of,
)
from lamina.dialects.vendors import ir
from lamina.passes.framework.find import find_ops
from lamina.passes.kernels.cpu.emit.tasks_text import DECLARATION, pack, run, unpack

_ALIGNMENT = 64
_DECLARED = re.compile(r"^declare [^@]*@([\w.$]+)\(.*$", re.MULTILINE)

_LOCAL = re.compile(
    r"^(?:define internal [^@]*)?@([\w.$]+)(?:\(| = (?:private|internal))", re.MULTILINE
)
_DEFINED = re.compile(r"^define [^@]*@([\w.$]+)\(", re.MULTILINE)


class ControlText(NamedTuple):
    """A kernel in LLVM IR and the bytes of scratch it needs; `of_vectors` says that LLVM's vectoriser would
    look for loops in vain."""

    llvm_ir: str
    scratch_bytes: int
    of_vectors: bool


def control_kernel(
    module: ir.Module, symbol: str, target: Target, texts: dict[str, str] | None
) -> ControlText:
    """The text of the kernel in a module, exporting `symbol`."""
    function = module.body.operations[0].operation
    attributes = function.attributes
    lanes = list(attributes[LANES]) if LANES in attributes else None
    as_program(function)
    if lanes:
        bound_by_arguments(function)
    run_pipeline(CPU_LANES if lanes else CPU_CONTROL, module)
    kernels, scratch, of_vectors = _kernels(module, symbol, target, texts)
    program = ProgramText(module, {name: f"{symbol}_{name}" for name in kernels_of(module)})
    attributes = program.main.attributes
    stack = integer_of(program.main, OWN_BYTES)
    planned = attributes[ARENA_BYTES].value - stack
    pointers, parameters = _parameters(program.main)
    steps = program.steps(pointers, "%scratch", "%arena", stack)
    header = "\n".join(program.header)
    name = f"{symbol}_steps" if lanes else symbol
    driver = (
        f"{header}\n"
        f"define void @{name}({', '.join(f'ptr noalias {p}' for p in [*parameters, '%arena'])}) "
        f'nounwind "prefer-vector-width"="{target.vector_bits}" {{\n'
        f"  %scratch = getelementptr i8, ptr %arena, i64 {planned}\n"
        f"{steps}\n  ret void\n{FAILED if program.may_leave else ''}}}\n"
    )
    parts = [*kernels, driver]
    if lanes:
        count, grain = lanes
        if planned + scratch or copies_results(program.main):
            grain = count  # what tasks share, only one may use
        inputs = program.main.attributes[ARGUMENTS].value
        parts.append(_lanes_in_tasks(symbol, parameters, inputs, count, grain))
    return ControlText(_joined(parts, symbol), planned + scratch, of_vectors)


def _lanes_in_tasks(symbol: str, parameters: list[str], inputs: int, count: int, grain: int) -> str:
    """The kernel that hands ranges of a loop's steps to the runtime's threads; the loop takes their
    bounds as its last two inputs."""
    low, high = f"%p{inputs - 2}", f"%p{inputs - 1}"
    buffers = [p for p in parameters if p not in (low, high)]
    given = [*buffers, "%arena"]
    lines = "\n".join
    takes = ", ".join(f"ptr {p}" for p in [*parameters, "%arena"])
    return f"""{DECLARATION}
define internal void @{symbol}_task(ptr %ctx, i64 %first, i64 %end) {{
{lines(unpack(given))}
  {low} = alloca i32
  {high} = alloca i32
  %first32 = trunc i64 %first to i32
  %end32 = trunc i64 %end to i32
  store i32 %first32, ptr {low}
  store i32 %end32, ptr {high}
  call void @{symbol}_steps({takes})
  ret void
}}
define void @{symbol}({", ".join(f"ptr {p}" for p in given)}) {{
{lines(pack(given))}
{run(f"{symbol}_task", count, grain)}
  ret void
}}
"""


def _kernels(
    planned: ir.Module, symbol: str, target: Target, texts: dict[str, str] | None
) -> tuple[list[str], int, bool]:
    """LLVM IR of the kernels in a planned module, under names that begin with `symbol`, the
    most scratch that one needs, and whether LLVM would look for loops to vectorise in vain."""
    parts: list[str] = []
    most = 0
    module = ir.Module.create()
    for name, kernel in kernels_of(planned).items():
        if is_scalar(kernel):
            continue
        library = library_kernel(kernel, f"{symbol}_{name}", target)
        if library is not None:
            parts.append(_with_own_names(library[0], len(parts) + 1))
            most = max(most, library[1])
            continue
        with ir.InsertionPoint(module.body):
            function = kernel.clone()
        function.attributes["sym_name"] = ir.StringAttr.get(f"{symbol}_{name}")
        if MATRIX_PRODUCTS not in function.attributes:  # each step is worth what code for a shape gains
            function.attributes[MATRIX_PRODUCTS] = ir.StringAttr.get("kernel")
        if "sym_visibility" in function.attributes:
            del function.attributes["sym_visibility"]
    source = str(module)
    places = KERNEL_PLACES if _loops_over_elements(planned) else CPU_CONTROL_VECTORS
    generated = generate(module, source, target, texts, places=places)
    most = max(most, *generated.scratch_bytes.values(), 0)
    scratch = -(-most // _ALIGNMENT) * _ALIGNMENT
    return [generated.llvm_ir, *parts], scratch, generated.of_vectors


def _loops_over_elements(planned: ir.Module) -> bool:
    """Whether a step of one of the innermost loops does no more than something to a few elements: of such
    loops LLVM may make others, over vectors."""
    main = main_of(planned)
    loops = find_ops(main, "scf.while")
    innermost = [loop for loop in loops if find_ops(loop, "scf.while") == [loop]]
    kernels = kernels_of(planned)
    return any(
        all(_is_of_elements(kernels[call.attributes["callee"].value]) for call in find_ops(loop, "func.call"))
        for loop in innermost
    )


def _is_of_elements(kernel: ir.Operation) -> bool:
    """Whether each op of a kernel computes or writes one element."""
    for view in kernel.regions[0].blocks[0].operations:
        op = view.operation
        written = op.operands[1:2] if op.name == "stablehlo.dynamic_update_slice" else op.results
        if any(math.prod(value.type.shape) > 1 for value in written):
            return False
    return True


def _with_own_names(text: str, number: int) -> str:
    """A library's kernel whose helpers and attribute groups are called as no other's."""
    text = re.sub(r"(?<=\s)#(\d+)(?=\s)", rf"#{number}000\1", text)
    for local in _LOCAL.findall(text):
        text = re.sub(rf"@{re.escape(local)}\b", f"@library_{number}_{local}", text)
    return text


def _parameters(main: ir.Operation) -> tuple[list[str], list[str]]:
    """The name of each buffer of @main, and the kernel's parameters: a result that takes over an
    argument's buffer is no parameter."""
    count = main.attributes[ARGUMENTS].value
    names: list[str] = []
    for number, given in enumerate(list(main.attributes["arg_attrs"])[:-1]):
        taken = given[ALIAS_OF].value if ALIAS_OF in given else None
        names.append(f"%p{number}" if number < count or taken is None else f"%p{taken}")
    return names, list(dict.fromkeys(names))


def _joined(parts: list[str], symbol: str) -> str:
    """Modules as one: what several declare, or one defines, is there once, and only `symbol` is
    exported."""
    seen = {name for part in parts for name in _DEFINED.findall(part)}

    def once(match: re.Match[str]) -> str:
        name = match.group(1)
        if name in seen:
            return ""
        seen.add(name)
        return match.group(0)

    text = "\n".join(_DECLARED.sub(once, part) for part in parts)
    return text.replace(f"define void @{symbol}_", f"define internal void @{symbol}_")
