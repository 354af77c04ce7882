"""A module on whole arrays made the module of one device."""

from __future__ import annotations

from time import perf_counter as clock
from typing import TYPE_CHECKING, Any

from lamina import config, log_lines
from lamina.partitioning.helper import partition

if TYPE_CHECKING:
    from lamina.jit.program_plan import Plan


def partition_module(plan: Plan, module: Any) -> tuple[Any, dict[str, Any]]:
    """The module that each device runs, from a plan's lowered one, and where its arrays lie, as
    sharding.layout has it.

    Results take the place of donated arguments whose parts are of their types. Raises PartitionError.
    """
    from lamina.dialects.context import parse
    from lamina.dialects.serialize import to_text
    from lamina.dialects.vendors import stablehlo_ext

    begin, mesh, consts = clock(), plan.requested.mesh, len(plan.const_args)
    text = to_text(module, debug_info=True, verified=True)
    version = str(stablehlo_ext.get_current_version())
    found = partition(text.encode(), mesh.size, version, config.partitioner_seconds.value)
    local = parse(found.code, name="<program>")
    inputs, outputs = (
        [[list(one.axes), list(one.term_axes), one.combiner.lower()] for one in side]
        for side in (found.inputs, found.outputs)
    )
    _place_donations(local)
    log_lines.write("partition", clock() - begin, f"{plan.name}: over {mesh}")
    return local, {"consts": inputs[:consts], "inputs": inputs[consts:], "outputs": outputs}


_DONATED, _ALIASED = "jax.buffer_donor", "tf.aliasing_output"


def _place_donations(module: Any) -> None:
    """Results of the types of donated arguments are put in their places."""
    from lamina.dialects.vendors import ir
    from lamina.jit.program_plan import match_donations

    main: Any = ir.SymbolTable(module.operation)["main"].operation
    if "arg_attrs" not in main.attributes:
        return
    given = [{entry.name: entry.attr for entry in row} for row in main.attributes["arg_attrs"]]
    of = main.attributes["function_type"].value
    ins, outs = list(of.inputs), list(of.results)
    aliases, _ = match_donations(
        [str(kind) for kind in ins], [str(kind) for kind in outs], [_DONATED in row for row in given]
    )
    with module.context:
        i32 = ir.IntegerType.get_signless(32)
        for argument, result in aliases.items():
            del given[argument][_DONATED]
            given[argument][_ALIASED] = ir.IntegerAttr.get(i32, result)
        main.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(row) for row in given])
