"""The program of one device from a program on whole arrays, by the passes of Shardy in jaxlib's MLIR."""

from __future__ import annotations

import sys
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import chlo, sdy, stablehlo
from jaxlib.mlir.passmanager import PassManager

from lamina.partitioning.shardy import BEGUN
from lamina.partitioning.shardy.custom_calls import custom_calls, make_parts, questions
from lamina.partitioning.shardy.inspections import take_inspections
from lamina.partitioning.shardy.meshes import shardings_of_main, write_groups_out
from lamina.partitioning.shardy.one_mesh import SeveralMeshes, use_one_mesh
from lamina.partitioning.shardy.ops import walk
from lamina.partitioning.shardy.positions import count_parts
from lamina.partitioning.shardy.single_calls import make_calls_once, mark_calls_made_once
from lamina.partitioning.shardy.sums import split_whole_arrays
from lamina.partitioning.shardy.whole_arrays import (
    any_mesh,
    gather_where_needed,
    keep_whole,
    mark_batches,
    take_batches,
)

_SPREAD = (
    "sdy-import-pipeline", "sdy-flatten-call-graph", "symbol-dce", "sdy-add-func-data-flow-edges",
    "sdy-apply-sharding-constraints", "func.func(sdy-sink-func-data-flow-edges)",
    "sdy-sharding-group-import", "sdy-import-func-calls{add-data-flow-edges-on-named-computations=true}",
    "symbol-dce", "sdy-pre-order-funcs", "sdy-user-priority-propagate", "sdy-export-named-computations",
    "sdy-propagate-to-func-results", "sdy-unflatten-call-graph", "symbol-dce",
    "sdy-insert-func-call-reshards",
)  # fmt: skip
_STAY = ("sdy-import-pipeline", "symbol-dce")
_SETTLE = ("func.func(sdy-constant-or-scalar-merger)", "func.func(sdy-sink-data-flow-edges)")
_CUT = (
    "sdy-remove-sharding-groups", "func.func(sdy-sharding-constraint-to-reshard)",
    "sdy-update-non-divisible-input-output-shardings", "sdy-remove-sub-axes-in-input-output-shardings",
    "sdy-close-shardings", "func.func(sdy-verify-unreduced-axes)",
    "func.func(sdy-insert-explicit-reshards{enable-full-version=true "
    "mark-partial-result-with-unreduced-axes=true})",
    "canonicalize{enable-patterns=sdy-reshard}",
    "sdy-resolve-permutation-factors{partition-count=@devices "
    "rng-bit-generator-unsafe=false}",
    "func.func(sdy-reshard-to-collectives)", "func.func(sdy-optimize-collectives)",
    "canonicalize{enable-patterns=sdy-collective}",
    "sdy-pad-for-divisibility",
    "func.func(sdy-resolve-single-device-sharding{partition-count=@devices})",
    "sdy-convert-global-to-local{enable-rgv3=true partition-count=@devices}",
    "sdy-drop-sharding-and-mesh{keep-module-sharding-metadata=true}",
    "canonicalize{enable-patterns=sdy-collective}", "func.func(sdy-drop-sharding-rules)",
    "sdy-inline-meshes",
)  # fmt: skip
"""With _SETTLE, the passes of `sdy-export-pipeline{partitioner-stage=convert-global-to-local}`, but for random
bits, which don't depend on the mesh here."""


class Refused(Exception):
    """No way leads further."""


def _context() -> Any:
    context = ir.Context()
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context.append_dialect_registry(registry)
    context.enable_multithreading(False)
    for dialect in (stablehlo, chlo, sdy):
        dialect.register_dialect(context)
    context.allow_unregistered_dialects = True
    return context


def partitioned(code: bytes, request: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    """The answer to a request, and the bytes that go with it."""
    with _context() as context, ir.Location.unknown():
        if code[5:14] == b"StableHLO":
            module = stablehlo.deserialize_portable_artifact(context, code)
        else:
            module = ir.Module.parse(code)
        mark_calls_made_once(module)
        mark_batches(module)
        devices, way = request["devices"], request["way"]
        try:
            use_one_mesh(module, devices)
        except SeveralMeshes as error:
            raise Refused(str(error)) from None
        if way == 0:
            split_whole_arrays(module)
        spread = _STAY if way == 1 else _SPREAD
        first, then = _passes((*spread, *_SETTLE), devices), _passes(_CUT, devices)
        _run(first, module)
        mesh = any_mesh(module, devices)
        if mesh is not None and way == 1:
            keep_whole(module, mesh)
        if calls := custom_calls(module):
            if "answers" not in request:
                return {"questions": questions(module, calls, devices)}, b""
            make_parts(module, calls, request["answers"], mesh or "")
        inspected = take_inspections(module, devices)
        if mesh is not None:
            gather_where_needed(module, mesh)
        _run(then, module)
        take_batches(module)
        _finish(module)
        count_parts(module)
        shardings = shardings_of_main(module, devices)
        write_groups_out(module)
        make_calls_once(module, devices)
        return {**shardings, "inspected": inspected}, _written(module, request["version"])


def _written(module: Any, version: str) -> bytes:
    """A portable artifact; text where StableHLO has no version of an op."""
    if any(op.name.startswith("chlo.") for op in walk(module.operation)):
        return module.operation.get_asm(enable_debug_info=True, assume_verified=True).encode()
    return bytes(stablehlo.serialize_portable_artifact(module, version))


def _passes(names: tuple[str, ...], devices: int) -> list[tuple[str, Any]]:
    """Passes with their names. Raises Refused where this jaxlib does not have them."""
    try:
        return [
            (name, PassManager.parse(f"builtin.module({name.replace('@devices', str(devices))})"))
            for name in names
        ]
    except Exception:
        import jaxlib

        raise Refused(
            "programs over several devices need Shardy's partitioner of jaxlib 0.12 or later: this is "
            f"jaxlib {jaxlib.__version__}"
        ) from None


def _run(passes: list[tuple[str, Any]], module: Any) -> None:
    """One after the other: each says on standard error what it is before it begins, since Shardy may end
    the process."""
    for name, one in passes:
        name = name.removeprefix("func.func(").partition("{")[0].rstrip(")")
        print(f"{BEGUN}{name}", file=sys.stderr, flush=True)
        one.run(module.operation)


def _finish(module: Any) -> None:
    """Takes off what is left of annotations; finds what has not been cut."""
    for op in walk(module.operation):
        for attribute in list(op.attributes):
            name = attribute if isinstance(attribute, str) else attribute.name
            if name.startswith("sdy."):
                del op.attributes[name]
        if op.name.startswith("sdy.") and op.name != "sdy.mesh":
            raise ValueError(f"{op.name} is left over: {op.location}")
        if op.name == "builtin.unrealized_conversion_cast":
            raise ValueError(f"arrays and their parts meet: {op.location}")
