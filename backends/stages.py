"""The hand-overs of a compilation: each form a module takes, run one after another or shown alone.

`run_optimize`, `run_fuse` and `run_plan` take a module from form to form in place; `Stages` shows
any of them for a program that is compiled already, made again from its StableHLO.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping, Sequence

from lamina.backends.cost import Counter, note_trip_counts
from lamina.backends.cpu.entry import entry_text
from lamina.backends.cpu.kernel import KernelObject, compile_kernel
from lamina.backends.effort import note_work
from lamina.backends.hlo_text import hlo_text
from lamina.backends.pipelines import (
    CUDA_FUSE,
    CUDA_INPUT,
    CUDA_PLAN,
    CUDA_PREPARE,
    STABLEHLO_FUSE,
    STABLEHLO_INPUT,
    STABLEHLO_OPTIMIZE,
    STABLEHLO_PLAN,
    STABLEHLO_PREPARE,
)
from lamina.backends.planned import is_scalar, kernels_of
from lamina.backends.target import Target
from lamina.dialects.context import parse
from lamina.dialects.interrupts import uninterrupted
from lamina.dialects.serialize import to_bytecode, to_text
from lamina.dialects.vendors import ir
from lamina.passes.framework import instrumentation
from lamina.passes.framework.base import CompileError
from lamina.passes.framework.find import find_ops, op_names
from lamina.passes.framework.instrumentation import Instrumentation
from lamina.passes.framework.machine_attribute import write_machine
from lamina.passes.framework.pipeline import Pipeline
from lamina.runtime.artifact import Artifact

FORMS = ("stablehlo", "optimized", "fused", "planned")
KERNEL_STAGES = {"cpu": ("linalg", "schedule", "llvm", "asm"), "cuda": ("linalg", "gpu", "llvm", "ptx")}
"""By the kind of target."""
_ENDINGS = {"linalg": "mlir", "schedule": "txt", "gpu": "mlir", "llvm": "ll", "asm": "s", "ptx": "ptx", "hlo": "txt",
            "manifest": "json"}  # fmt: skip
_CALL = "stablehlo.custom_call"
_COMMENTS = {"linalg": "//", "schedule": "#", "gpu": "//", "llvm": ";", "asm": "#", "ptx": "//"}


def stages_of(kind: str) -> tuple[str, ...]:
    """The stages of a program for this kind of target, which have a text each."""
    return (*FORMS, *KERNEL_STAGES[kind], "hlo", "manifest")


def check_stage(stage: str, kind: str = "cpu") -> None:
    """Raises ValueError where such a target's programs have no such stage."""
    if stage not in stages_of(kind):
        raise ValueError(f"no stage {stage!r}; there are {', '.join(stages_of(kind))}")


def working_copy(module: ir.Module) -> ir.Module:
    """The module again, made ready for the passes."""
    with module.context:
        copy = ir.Module.parse(to_bytecode(module))
    make_ready(copy)
    return copy


def make_ready(module: ir.Module) -> None:
    """Check for what would bring an upstream pass down, and let @main alone be public."""
    functions = [op.operation for op in module.body.operations if op.operation.name == "func.func"]
    names = [function.attributes["sym_name"].value for function in functions]
    if "main" not in names:
        if len(names) != 1:
            listed = ", ".join(names) or "none"
            raise CompileError("builtin.module", None, f"has no function @main; it has {listed}")
        names = ["main"]
        functions[0].attributes["sym_name"] = ir.StringAttr.get("main", module.context)
    for function, name in zip(functions, names):
        if not function.regions[0].blocks:
            raise CompileError.at(function, f"@{name} is declared but has no body")
        if name != "main":
            function.attributes["sym_visibility"] = ir.StringAttr.get("private", module.context)


@uninterrupted()
def specialized(
    module: ir.Module, arguments: Sequence[ir.Type], values: Mapping[int, int]
) -> ir.Module:
    """The module for arguments of these static types, where it leaves sizes open.

    `values` are those of scalar integer arguments that the sizes depend on; the arguments stay.
    """
    copy = working_copy(module)
    block = ir.SymbolTable(copy.operation)["main"].operation.regions[0].blocks[0]
    with copy.context, ir.Location.unknown(), ir.InsertionPoint.at_block_begin(block):
        for position, value in values.items():
            argument = block.arguments[position]
            element = ir.IntegerAttr.get(argument.type.element_type, value)
            known = ir.Operation.create(
                "stablehlo.constant",
                results=[argument.type],
                attributes={"value": ir.DenseElementsAttr.get_splat(argument.type, element)},
            )
            argument.replace_all_uses_with(known.result)
    listed = ",".join(map(str, arguments))
    with instrumentation.off():
        Pipeline.of(f"stablehlo-refine-arguments{{types={listed}}}").run(copy)
    return copy


def run_optimize(
    module: ir.Module, watch: Instrumentation, kind: str = "cpu", text: str | None = None
) -> None:
    """Form 1 to form 2: one function, no more ops than the program needs, sizes known. `kind` is
    the target's. `text` is the module's, where that is there already, or `spelled_ops` of one whose
    values are plain arrays."""
    _dump(watch, "stablehlo", module)
    if text is None:  # what is needed is seen before, since the first passes make nothing that is
        text = module.operation.get_asm(large_elements_limit=8)
    first, prepare = (
        (CUDA_INPUT, CUDA_PREPARE) if kind == "cuda" else (STABLEHLO_INPUT, STABLEHLO_PREPARE)
    )
    passes = (
        *first,
        *(needed for patterns, needed in prepare if _matches(patterns, text)),
        *STABLEHLO_OPTIMIZE,
    )
    _pipeline(passes).run(module)
    note_trip_counts(module)
    _dump(watch, "optimized", module, passes)


def spelled_ops(module: ir.Module) -> str:
    """The ops of a module as its text spells them, each once, without operands and types."""
    calls = find_ops(module, _CALL)
    targets = {f"{_CALL} @{call.attributes['call_target_name'].value}" for call in calls}
    return " ".join((*op_names(module), *targets, ""))


def _matches(patterns: str | tuple[str, ...], text: str) -> bool:
    several = (patterns,) if isinstance(patterns, str) else patterns
    return any(re.search(pattern, text) for pattern in several)


def run_fuse(module: ir.Module, watch: Instrumentation, kind: str = "cpu") -> Counter:
    """Form 2 to form 3: kernels, as a kind of target wants them, and a @main that calls them.
    Returns what counts their work."""
    passes = {"cpu": STABLEHLO_FUSE, "cuda": CUDA_FUSE}[kind]
    _pipeline(passes).run(module)
    counter = Counter(module)
    if kind == "cpu":
        note_work(module, counter)
    _dump(watch, "fused", module, passes)
    return counter


def run_plan(module: ir.Module, watch: Instrumentation, kind: str = "cpu") -> None:
    """Form 3 to form 4: every value has its place in memory."""
    passes = {"cpu": STABLEHLO_PLAN, "cuda": CUDA_PLAN}[kind]
    _pipeline(passes).run(module)
    _dump(watch, "planned", module, passes)


@functools.cache
def _pipeline(passes: tuple[str, ...]) -> Pipeline:
    return Pipeline.of(*passes)


def _dump(
    watch: Instrumentation, form: str, module: ir.Module, passes: tuple[str, ...] = ()
) -> None:
    if watch.dump is not None:
        how = f"// lamina-opt --pass-pipeline='{_pipeline(passes)}'\n" if passes else ""
        watch.dump.write(f"{form}.mlir", how + to_text(module, debug_info=True))


class Stages:
    """The forms of a compiled program as text."""

    def __init__(self, artifact: Artifact) -> None:
        self.artifact = artifact

    def dump(self, watch: Instrumentation) -> None:
        """Write what follows the planned form, where hand-overs are asked for."""
        if watch.dump is not None:
            for stage in (*self._kernel_stages, "hlo", "manifest"):
                watch.dump.write(f"{stage}.{_ENDINGS[stage]}", self.text(stage))

    @uninterrupted()
    def text(self, stage: str, *, debug_info: bool = False) -> str:
        """The program at one of `stages_of` its target, with the places of its ops in the source on request;
        raises ValueError for another stage."""
        check_stage(stage, self._target.kind)
        if stage == "stablehlo":
            return to_text(parse(self.artifact.source), debug_info=True)
        if stage == "manifest":
            return json.dumps(self.artifact.manifest, indent=2)
        if stage in self._kernel_stages:
            return self._kernels(stage)
        if stage == "hlo":
            return hlo_text(self._form("fused"), self.artifact.manifest["name"])
        return to_text(self._form(stage), debug_info=debug_info)

    @property
    def _kernel_stages(self) -> tuple[str, ...]:
        return KERNEL_STAGES[self._target.kind]

    @property
    def _target(self) -> Target:
        return Target.described(self.artifact.manifest["target"])

    def _form(self, stage: str) -> ir.Module:
        module = working_copy(parse(self.artifact.source))
        if self._target.kind == "cpu":
            write_machine(module, self._target.machine)
        with instrumentation.off():
            watch = Instrumentation()
            for run, form in (
                (run_optimize, "optimized"),
                (run_fuse, "fused"),
                (run_plan, "planned"),
            ):
                run(module, watch, self._target.kind)
                if form == stage:
                    break
        return module

    def _kernels(self, stage: str) -> str:
        target = self._target
        if target.kind == "cuda":
            return _cuda_kernels(self._form("planned"), target, stage)
        comment = _COMMENTS[stage]
        parts: dict[str, str] = {}
        symbols: dict[str, str] = {}
        for name, compiled in self._compiled.items():
            text = compiled.texts.get(stage, f"{comment} no loops that are scheduled\n")
            parts.setdefault(compiled.symbol, f"{comment} kernel {name}\n{text}")
            symbols[name] = compiled.symbol
        if stage == "llvm":
            scratch_bytes = max((compiled.scratch_bytes for compiled in self._compiled.values()), default=0)
            entry = entry_text(self._form("planned"), symbols, scratch_bytes)
            parts[""] = f"{comment} entry\n{entry}"
        return "\n".join(parts.values())

    @functools.cached_property
    def _compiled(self) -> dict[str, KernelObject]:
        """The kernels of a program for a CPU by name, with their texts."""
        planned = self._form("planned")
        with instrumentation.off():
            return {
                name: compile_kernel(kernel, self._target, keep_texts=True)
                for name, kernel in kernels_of(planned).items()
                if not is_scalar(kernel)
            }


def _cuda_kernels(planned: ir.Module, target: Target, stage: str) -> str:
    from lamina.backends.cuda.kernel import compile_kernel as compile_cuda_kernel

    parts: dict[str, str] = {}
    with instrumentation.off():
        for name, kernel in kernels_of(planned).items():
            compiled = compile_cuda_kernel(kernel, target)
            text = f"{_COMMENTS[stage]} kernel {name}\n{compiled.texts[stage]}"
            parts.setdefault(compiled.symbol, text)
    return "\n".join(parts.values())
