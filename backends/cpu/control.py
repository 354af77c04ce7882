"""A loop or branch that is one kernel: its own small program, in one function.

The kernel's function is fused and planned like a program. Its small buffers go on the stack, where
LLVM turns scalars and short arrays into registers; the kernels in it are inlined. So a step makes
no calls, and what it reads it finds in registers or in the first-level cache.
"""

from __future__ import annotations

import re

from lamina.backends.cpu.generate import generate, run_pipeline
from lamina.backends.cpu.libraries import library_kernel
from lamina.backends.cpu.program_text import ProgramText, is_scalar, kernels_of
from lamina.backends.pipelines import CPU_CONTROL
from lamina.backends.target import Target
from lamina.dialects.vendors import ir

_ALIGNMENT = 64
_DECLARED = re.compile(r"^declare [^@]*@([\w.$]+)\(.*$", re.MULTILINE)

_LOCAL = re.compile(
    r"^(?:define internal [^@]*)?@([\w.$]+)(?:\(| = (?:private|internal))", re.MULTILINE
)
_DEFINED = re.compile(r"^define [^@]*@([\w.$]+)\(", re.MULTILINE)


def control_kernel(
    module: ir.Module, symbol: str, target: Target, texts: dict[str, str] | None
) -> tuple[str, int]:
    """LLVM IR of the kernel in a module, exporting `symbol`, and the bytes of scratch it needs."""
    _as_program(module)
    run_pipeline(CPU_CONTROL, module)
    kernels, scratch = _kernels(module, symbol, target, texts)
    program = ProgramText(module, {name: f"{symbol}_{name}" for name in kernels_of(module)})
    attributes = program.main.attributes
    stack = attributes["lamina.own_bytes"].value if "lamina.own_bytes" in attributes else 0
    planned = attributes["lamina.arena_bytes"].value - stack
    pointers, parameters = _parameters(program.main)
    steps = program.steps(pointers, "%scratch", "%arena", stack)
    header = "\n".join(program.header)
    driver = (
        f"{header}\n"
        f"define void @{symbol}({', '.join(f'ptr noalias {p}' for p in [*parameters, '%arena'])}) "
        f'nounwind "prefer-vector-width"="{target.vector_bits}" {{\n'
        f"  %scratch = getelementptr i8, ptr %arena, i64 {planned}\n"
        f"{steps}\n  ret void\n}}\n"
    )
    return _joined([*kernels, driver], symbol), planned + scratch


def _as_program(module: ir.Module) -> None:
    """Let the function be @main, and each argument that it updates a donated one."""
    function = module.body.operations[0].operation
    attributes = function.attributes
    attributes["sym_name"] = ir.StringAttr.get("main")
    for name in ("lamina.kind", "lamina.reason"):
        if name in attributes:
            del attributes[name]
    if "arg_attrs" in attributes:
        donated = [
            ir.DictAttr.get(
                {"tf.aliasing_output": given["lamina.inout"]} if "lamina.inout" in given else {}
            )
            for given in attributes["arg_attrs"]
        ]
        attributes["arg_attrs"] = ir.ArrayAttr.get(donated)


def _kernels(
    planned: ir.Module, symbol: str, target: Target, texts: dict[str, str] | None
) -> tuple[list[str], int]:
    """LLVM IR of the kernels in a planned module, under names that begin with `symbol`, and the
    most scratch that one needs."""
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
        if "sym_visibility" in function.attributes:
            del function.attributes["sym_visibility"]
    source = str(module)
    generated = generate(module, source, target, texts)
    most = max(most, *generated.scratch_bytes.values(), 0)
    return [generated.llvm_ir, *parts], -(-most // _ALIGNMENT) * _ALIGNMENT


def _with_own_names(text: str, number: int) -> str:
    """A library's kernel whose helpers and attribute groups are called as no other's."""
    text = re.sub(r"(?<=\s)#(\d+)(?=\s)", rf"#{number}000\1", text)
    for local in _LOCAL.findall(text):
        text = re.sub(rf"@{re.escape(local)}\b", f"@library_{number}_{local}", text)
    return text


def _parameters(main: ir.Operation) -> tuple[list[str], list[str]]:
    """The name of each buffer of @main, and the kernel's parameters: a result that takes over an
    argument's buffer is no parameter."""
    count = main.attributes["lamina.arguments"].value
    names: list[str] = []
    for number, given in enumerate(list(main.attributes["arg_attrs"])[:-1]):
        taken = given["lamina.alias_of"].value if "lamina.alias_of" in given else None
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
