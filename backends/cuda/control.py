"""A loop or branch that is one kernel: its own small program, done by one thread, by one block, or by a
thread for each lane of a batch.

The kernel's function is fused and planned like a program; its kernels are lowered to buffers and
inlined into the steps of the plan (`gpu-run-steps`).
"""

from __future__ import annotations

from lamina.backends.control_program import as_program, bound_by_arguments, copies_results
from lamina.backends.lowering import lower_to_linalg, run_pipeline
from lamina.backends.pipelines import CUDA_CONTROL, CUDA_STEPS
from lamina.backends.planned import kernels_of, main_of
from lamina.dialects.attributes import ALIAS_OF, FORM, LANES
from lamina.dialects.constants import array_in, dense
from lamina.dialects.vendors import ir
from lamina.passes.framework.find import find_ops
from lamina.passes.kernels.gpu.device.job import buffer_type
from lamina.passes.kernels.gpu.steps.walk import STEPS
from lamina.passes.stablehlo.loops.step_form import is_few


def lower_control(module: ir.Module, symbol: str) -> tuple[ir.Module, str]:
    """A module with a kernel's function of kind control -> one with a `gpu.module`, and the text of its
    kernels as loops over arrays."""
    function = module.body.operations[0].operation
    form = function.attributes[FORM].value
    lanes = list(function.attributes[LANES])[0] if LANES in function.attributes else 0
    alone = _copy(module) if lanes else None
    as_program(function)
    if lanes:
        bound_by_arguments(function)
    run_pipeline(CUDA_CONTROL[form], module)
    if alone is not None and copies_results(main_of(module)):
        # All lanes would copy at once: one thread does them in turn.
        alone.body.operations[0].operation.attributes[FORM] = ir.StringAttr.get("thread")
        del alone.body.operations[0].operation.attributes[LANES]
        return lower_control(alone, symbol)
    by_form: dict[str, list[ir.Operation]] = {}
    for kernel in kernels_of(module).values():
        serial = form != "block" or is_few(kernel)
        by_form.setdefault("thread" if serial else form, []).append(kernel)
    steps = ir.Module.create()
    texts = [str(main_of(module))]
    for own, kernels in by_form.items():
        lowered = _lowered(kernels, own, texts)
        with ir.InsertionPoint(steps.body):
            for view in lowered.body.operations:
                view.operation.clone()
    _add_steps(steps, module, symbol, form, lanes)
    run_pipeline(("gpu-run-steps",), steps)
    return steps, "\n".join(texts)


def _lowered(kernels: list[ir.Operation], form: str, texts: list[str]) -> ir.Module:
    """Kernels of a planned module as `gpu-run-steps` wants them; as linalg they are added to texts."""
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        for kernel in kernels:
            copy = kernel.clone().operation
            if "sym_visibility" in copy.attributes:
                del copy.attributes["sym_visibility"]
    lower_to_linalg(module, str(module), "CUDA")
    texts.append(str(module))
    run_pipeline(CUDA_STEPS[form], module)
    return module


def _copy(module: ir.Module) -> ir.Module:
    """The same again."""
    return ir.Module.parse(module.operation.get_asm(enable_debug_info=True))


def _add_steps(
    steps: ir.Module, planned: ir.Module, symbol: str, form: str, lanes: int
) -> None:
    """Puts @main of a planned module, and its constants, beside the kernels."""
    main = main_of(planned)
    for op in find_ops(main, "memref.get_global"):
        op.attributes["name"] = ir.FlatSymbolRefAttr.get(_own(op.attributes["name"].value))
    with ir.InsertionPoint(steps.body):
        for view in planned.body.operations:
            if view.operation.name == "memref.global":
                made = view.operation.clone().operation
                made.attributes["sym_name"] = ir.StringAttr.get(_own(made.attributes["sym_name"].value))
        defined = {view.operation.attributes["sym_name"].value for view in steps.body.operations}
        for view in planned.body.operations:
            op = view.operation
            if op.name == "func.func" and op.attributes["sym_name"].value not in {"main", *defined}:
                _declare(op)
        made = main.clone().operation
    attributes = made.attributes
    attributes["sym_name"] = ir.StringAttr.get(symbol)
    attributes[STEPS] = ir.StringAttr.get(form)
    if lanes:
        attributes[LANES] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), lanes)
    _drop_results_in_arguments(made)
    with ir.Location.unknown():
        _without_signs(steps, made)


def _declare(function: ir.Operation) -> None:
    copy = function.clone().operation
    given = ir.FunctionType(ir.TypeAttr(copy.attributes["function_type"]).value).inputs
    types = [buffer_type(of) if _is_unsigned(of) else of for of in given]
    copy.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, []))


def _without_signs(steps: ir.Module, main: ir.Operation) -> None:
    """Lets the buffers of @main have types as those of lowered kernels have."""
    for op in find_ops(steps, "memref.global"):
        of = op.attributes["type"].value
        if _is_unsigned(of):
            value = array_in(op, "initial_value", of)
            op.attributes["initial_value"] = dense(value.view(value.dtype.str.replace("u", "i")))
            op.attributes["type"] = ir.TypeAttr.get(buffer_type(of))

    def visit(op: ir.Operation) -> ir.WalkResult:
        for value in (*op.results, *(a for r in op.regions for b in r.blocks for a in b.arguments)):
            if _is_unsigned(value.type):
                value.set_type(buffer_type(value.type))
        return ir.WalkResult.ADVANCE

    main.walk(visit)
    types = [argument.type for argument in main.regions[0].blocks[0].arguments]
    main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, []))


def _is_unsigned(of: ir.Type) -> bool:
    return isinstance(of, ir.MemRefType) and str(of.element_type).startswith("ui")


def _own(name: str) -> str:
    return f"steps_{name}"


def _drop_results_in_arguments(main: ir.Operation) -> None:
    """Results that take over an argument's buffer are no parameters."""
    block = main.regions[0].blocks[0]
    given = [ir.DictAttr(one) for one in main.attributes["arg_attrs"]]
    kept = []
    for number in reversed(range(len(given))):
        if ALIAS_OF in given[number]:
            argument = block.arguments[given[number][ALIAS_OF].value]
            block.arguments[number].replace_all_uses_with(argument)
            block.erase_argument(number)
        else:
            kept.append(given[number])
    main.attributes["arg_attrs"] = ir.ArrayAttr.get(kept[::-1])
