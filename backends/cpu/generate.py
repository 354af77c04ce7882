"""Functions of StableHLO ops on static tensors -> LLVM IR that does them in loops on buffers."""

from __future__ import annotations

import functools
from collections.abc import Generator

from lamina.backends.cpu.in_step import in_step
from lamina.backends.lowering import check_translatable, pipeline_steps, stages_for, steps_to_linalg
from lamina.backends.pipelines import (
    CPU_KERNEL_LLVM,
    CPU_KERNEL_LOOPS,
    CPU_KERNEL_WRITTEN,
    EXPLAINED_LOOPS,
    KERNEL_PLACES,
    ONLY_WITH,
)
from lamina.backends.target import Target
from lamina.dialects.attributes import CANDIDATES, MACHINE, SCHEDULE
from lamina.dialects.vendors import ir, math, translate_to_llvm_ir
from lamina.passes.framework.find import find_ops
from lamina.passes.framework.machine_attribute import write_machine
from lamina.passes.llvm.finish_kernel import FinishKernel
from lamina.passes.llvm.limit_inlining import LimitInlining
from lamina.passes.memref.vectorize_loops import IN_ORDER, OF_VECTORS, SIMPLIFY
from lamina.records import Record

_FEW_PLACES = LimitInlining()


class Generated(Record):
    """LLVM IR of functions that take their buffers and then scratch memory, of which each needs
    so many bytes. `of_vectors` says that LLVM's vectoriser would look for loops in vain, `in_order`
    that its instructions are in an order to keep, `simplify` that some loops are not over vectors even so."""

    llvm_ir: str
    scratch_bytes: dict[str, int]
    of_vectors: bool
    in_order: bool
    simplify: bool


def generate(
    module: ir.Module,
    source: str,
    target: Target,
    texts: dict[str, str] | None,
    public: str | None = None,
    places: tuple[str, ...] = KERNEL_PLACES,
) -> Generated:
    """LLVM IR of the functions of a module, whose text `source` is.

    The function `public` is exported. Without one, all are made to be inlined into code that is
    added to the text. `places` is `KERNEL_PLACES` or a pipeline that begins so. `texts` is given the
    stages "linalg" and "schedule".
    """
    (generated,) = in_step([generating(module, source, target, texts, public, places)])
    return generated


def generating(
    module: ir.Module,
    source: str,
    target: Target,
    texts: dict[str, str] | None,
    public: str | None = None,
    places: tuple[str, ...] = KERNEL_PLACES,
    inlining: LimitInlining = _FEW_PLACES,
) -> Generator[None, None, Generated]:
    """`generate`, a pass at a time. `inlining` decides which functions are called."""
    if MACHINE not in module.operation.attributes:
        write_machine(module, target.machine)
    stages = stages_for(source, CPU_KERNEL_WRITTEN)
    yield from pipeline_steps(_for_target(stages, target), module)
    yield from steps_to_linalg(module, source, "CPU")
    if texts is not None:
        texts["linalg"] = str(module)
    loops = CPU_KERNEL_LOOPS if texts is None else EXPLAINED_LOOPS
    yield from pipeline_steps(_for_target(_of_use(loops, module, source), target), module)
    if texts is not None:
        texts["schedule"] = _take_schedules(module)
    scratch = _scratch_bytes(module)
    yield from pipeline_steps(_for_target(_of_use(places, module, source), target), module)
    notes = [name in module.operation.attributes for name in (OF_VECTORS, IN_ORDER, SIMPLIFY)]
    yield from pipeline_steps(_for_target(_of_use(CPU_KERNEL_LLVM, module, source), target), module)
    inlining.run(module)
    FinishKernel(target.vector_bits, public or "", inline=public is None).run(module)
    yield
    check_translatable(module, ("llvm",))
    yield
    return Generated(translate_to_llvm_ir(module.operation), scratch, *notes)


def _take_schedules(module: ir.Module) -> str:
    """The schedules that are on a module's functions, each with what was considered; they are taken away."""
    lines: list[str] = []
    for op in module.body.operations:
        attributes = op.operation.attributes
        if SCHEDULE in attributes:
            lines.append(ir.StringAttr(attributes[SCHEDULE]).value)
            lines += [f"#   {ir.StringAttr(line).value}" for line in ir.ArrayAttr(attributes[CANDIDATES])]
            del attributes[SCHEDULE], attributes[CANDIDATES]
    return "\n".join((*lines, ""))


@functools.cache
def _for_target(stages: tuple[str, ...], target: Target) -> tuple[str, ...]:
    values = {
        "VECTOR_BITS": str(target.vector_bits),
        "PRODUCT_FEATURES": target.product_features,
        "GATHERS": str(target.gathers).lower(),
    }
    return tuple(_with_values(stage, values) for stage in stages)


def _with_values(stage: str, values: dict[str, str]) -> str:
    for word, value in values.items():
        stage = stage.replace(word, value)
    return stage


def _of_use(stages: tuple[str, ...], module: ir.Module, source: str) -> tuple[str, ...]:
    """The passes without those that have nothing to do for the ops in a module and its text."""
    names = {op.name for op in find_ops(module, *_names_to_look_for(stages))}
    return tuple(
        stage
        for stage in stages
        if (words := ONLY_WITH.get(stage)) is None
        or any(name.startswith(words) for name in names)
        or any(word in source for word in words)
    )


@functools.cache
def _names_to_look_for(stages: tuple[str, ...]) -> tuple[str, ...]:
    words = {word for stage in stages for word in ONLY_WITH.get(stage, ())}
    names = {word for word in words if "." in word}
    if "math." in names:
        names.remove("math.")
        ops = (getattr(getattr(math, found), "OPERATION_NAME", "") for found in dir(math))
        names.update(name for name in ops if name)
    return tuple(sorted(names))


def _scratch_bytes(module: ir.Module) -> dict[str, int]:
    """The size of each public function's last argument."""
    found = {}
    for op in module.body.operations:
        if op.operation.name == "func.func" and "sym_visibility" not in op.attributes:
            arguments = op.regions[0].blocks[0].arguments
            name = ir.StringAttr(op.attributes["sym_name"]).value
            found[name] = ir.MemRefType(arguments[len(arguments) - 1].type).shape[0]
    return found
