"""The bytes of a program as JAX hands them over, as an MLIR module.

JAX sends StableHLO's portable artifacts; MLIR bytecode of its own where a program holds ops that
StableHLO has no version of; some callers text. All of it comes from this process, so it is trusted.
"""

from __future__ import annotations

from typing import Any

from lamina import config
from lamina.dialects.foreign import BYTECODE
from lamina.jax_plugin.failures import PluginError

FORMAT = "mlir"


def read_program(code: bytes, format: str, partitions: int = 1) -> tuple[Any, list[list[str]]]:
    """The module in a program's bytes: of one device's part, where there are several partitions. And the
    shardings of the arguments and the results then, as Facts has them.

    Raises PluginError for another format than MLIR's and for what can't be partitioned, ParseError for
    what is no program.
    """
    if format != FORMAT:
        raise PluginError(
            "UNIMPLEMENTED", f"programs of the format {format!r} are not compiled, only of {FORMAT!r}"
        )
    if not code.startswith(BYTECODE) and partitions == 1:
        return _of_text(code), []
    code, rows = _of_one_device(code, partitions)
    return _parsed(code), rows


def without_chlo(text: str) -> str:
    """A program in terms of StableHLO alone, which is what jaxlib can write as HLO."""
    from lamina.dialects.context import parse
    from lamina.dialects.serialize import to_text
    from lamina.passes.framework.upstream import run_upstream

    if "chlo." not in text:
        return text
    module = parse(text, name="<program>")
    run_upstream(module, "func.func(chlo-legalize-to-stablehlo)")
    return to_text(module, debug_info=True)


def _of_one_device(code: bytes, partitions: int) -> tuple[bytes, list[list[str]]]:
    """Bytecode without annotations, and the shardings of the arguments and the results."""
    from lamina.jax_plugin import shardings

    if partitions == 1:
        if shardings.mentions_shardings(code) or not shardings.is_portable(code):
            code = shardings.without_shardings(code, _version())
        return code, []
    from lamina.jax_plugin.custom_partitioning import answered
    from lamina.jax_plugin.inspections import tell
    from lamina.jax_plugin.op_shardings import op_sharding
    from lamina.partitioning import PartitionError, partition

    try:
        found = partition(code, partitions, _version(), config.partitioner_seconds.value, answered)
    except PartitionError as error:
        raise PluginError("UNIMPLEMENTED", str(error)) from None
    tell(found.inspected)
    rows = [[op_sharding(one).hex() for one in side] for side in (found.inputs, found.outputs)]
    return found.code, rows


def _parsed(code: str | bytes) -> Any:
    from lamina.dialects.context import context_for_program, parse

    with context_for_program(len(code)):
        return parse(code, name="<program>")


def _of_text(code: bytes) -> Any:
    from lamina.dialects.context import decoded
    from lamina.dialects.resources import inline_resources
    from lamina.dialects.shardy import without_shardings
    from lamina.dialects.sparse_constants import write_sparse_as_dense

    text = without_shardings(decoded(code, "<program>"))
    return _parsed(write_sparse_as_dense(inline_resources(text)))


def _version() -> str:
    from lamina.dialects.vendors import stablehlo_ext

    return str(stablehlo_ext.get_current_version())
