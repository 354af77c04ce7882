"""What every backend does to a kernel of StableHLO ops: lower it to linalg on tensors, and see to it
that nothing is left that translation to LLVM IR would crash on."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator

from lamina.backends.pipelines import CPU_KERNEL_LINALG, CPU_KERNEL_PREPARE, ONLY_ON_CPUS
from lamina.dialects.vendors import ir, rewrite
from lamina.passes.framework.base import CompileError
from lamina.passes.framework.pipeline import Pipeline


def lower_to_linalg(module: ir.Module, source: str, backend: str) -> None:
    """Functions of StableHLO ops -> linalg on tensors, for any backend. `source` is the text."""
    for _ in steps_to_linalg(module, source, backend):
        pass


def steps_to_linalg(module: ir.Module, source: str, backend: str) -> Iterator[None]:
    """`lower_to_linalg`, a step at a time."""
    if "?" in source:
        check_shapes(module)
    yield from pipeline_steps(preparing(source, backend) + CPU_KERNEL_LINALG, module)
    _check_lowered(module, ("stablehlo", "chlo"), backend)


def run_pipeline(stages: tuple[str, ...], module: ir.Module) -> None:
    """Run the passes of a pipeline, which is built once."""
    for _ in pipeline_steps(stages, module):
        pass


def pipeline_steps(stages: tuple[str, ...], module: ir.Module) -> Iterator[None]:
    """`run_pipeline`, a pass at a time."""
    if stages:
        yield from _pipeline(stages).steps(module)


@functools.cache
def _pipeline(stages: tuple[str, ...]) -> Pipeline:
    return Pipeline.of(*stages)


def preparing(source: str, backend: str) -> tuple[str, ...]:
    """What must be done before with a kernel of this text, for "CPU" or "CUDA"."""
    left_out = () if backend == "CPU" else ONLY_ON_CPUS
    return tuple(stage for stage in stages_for(source, CPU_KERNEL_PREPARE) if stage not in left_out)


def stages_for(source: str, table: Iterable[tuple[str | tuple[str, ...], str]]) -> tuple[str, ...]:
    """The stages of a table, each beside a word or several, that have one in a kernel's text."""

    def has(words: str | tuple[str, ...]) -> bool:
        return any(word in source for word in ((words,) if isinstance(words, str) else words))

    return tuple(stage for words, stage in table if has(words))


def check_shapes(module: ir.Module) -> None:
    """Refuse sizes that are not known: nothing below may assume that they are."""

    def visit(op: ir.Operation) -> ir.WalkResult:
        for result in op.results:
            if isinstance(result.type, ir.RankedTensorType) and not result.type.has_static_shape:
                dynamic.append(op)
        return ir.WalkResult.ADVANCE

    dynamic: list[ir.Operation] = []
    module.operation.walk(visit)
    if dynamic:
        raise CompileError.at(dynamic[0], f"a result of dynamic size {dynamic[0].results[0].type}")


def _check_lowered(module: ir.Module, dialects: tuple[str, ...], backend: str) -> None:
    target = rewrite.ConversionTarget(module.context)
    for dialect in dialects:
        target.add_illegal_dialect(dialect)
    target.add_legal_op("stablehlo.return")
    if not _is_legal(module, target, rewrite.apply_partial_conversion):
        begins = tuple(f"{dialect}." for dialect in dialects)
        left = _ops(module, lambda name: name.startswith(begins) and name != "stablehlo.return")
        raise CompileError.at(left[0], f"the {backend} backend has no lowering for this op here")


def check_translatable(module: ir.Module, dialects: tuple[str, ...]) -> None:
    """Translation to LLVM IR crashes on other dialects than these, so none may be left, and on what is
    invalid."""
    module.operation.verify()
    target = rewrite.ConversionTarget(module.context)
    target.add_legal_op("builtin.module")
    for dialect in dialects:
        target.add_legal_dialect(dialect)
    if not _is_legal(module, target, rewrite.apply_full_conversion):
        allowed = ("builtin.module", *(f"{dialect}." for dialect in dialects))
        left = _ops(module, lambda name: not name.startswith(allowed))
        raise CompileError.at(left[0], "not lowered to the llvm dialect")


def _is_legal(
    module: ir.Module, target: rewrite.ConversionTarget, convert: Callable[..., None]
) -> bool:
    """Whether a conversion that can do nothing finds nothing to do: that takes a tenth of the time of
    looking at each op here."""
    nothing = rewrite.RewritePatternSet(module.context).freeze()
    try:
        convert(module.operation, target, nothing)
    except ir.MLIRError:
        return False
    return True


def _ops(module: ir.Module, wanted: Callable[[str], bool]) -> list[ir.Operation]:
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if wanted(op.name):
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found
