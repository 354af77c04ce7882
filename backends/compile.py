"""From a StableHLO module to an artifact: look it up, or optimise, fuse, plan, generate code.

The module without locations names the artifact in the store together with the target and the
compiler's version; each kernel is looked up there by its own content as well.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections import Counter
from typing import Any

from lamina.backends import cost, workers
from lamina.backends.built import BuiltProgram
from lamina.backends.inlined_size import MOST_OPERATIONS, check_inlined_size
from lamina.backends.kernels import Kernels
from lamina.backends.pipelines import ALL_PIPELINES
from lamina.backends.planned import kernels_of, main_of
from lamina.backends.stages import (
    Stages,
    make_ready,
    run_fuse,
    run_optimize,
    run_plan,
    spelled_ops,
    working_copy,
)
from lamina.backends.target import Target
from lamina.backends.versions import versions
from lamina.dialects.attributes import ALIAS_OF, ARENA_BYTES, UNUSED_DONATIONS
from lamina.dialects.context import parse
from lamina.dialects.interrupts import uninterrupted
from lamina.dialects.resources import inline_resources
from lamina.dialects.serialize import to_bytecode, to_text
from lamina.dialects.sparse_constants import write_sparse_as_dense
from lamina.dialects.types import DYNAMIC, byte_size, dtype_of, shape_of
from lamina.dialects.vendors import ir
from lamina.passes.framework import instrumentation
from lamina.passes.framework.base import CompileError
from lamina.passes.framework.instrumentation import Instrumentation
from lamina.passes.framework.machine_attribute import write_machine
from lamina.passes.framework.pipeline import checked_if_it_fails
from lamina.records import Record
from lamina.runtime.artifact import ABI_VERSION, Artifact, ArtifactError
from lamina.runtime.store import Store, default_store

_KIND = "artifact"


class Compilation(Record, frozen=False):
    """A compiled program: its artifact, and its form at every stage on demand."""

    artifact: Artifact
    from_cache: bool
    _stages: Stages | None = None

    @classmethod
    def of_artifact(cls, artifact: Artifact) -> Compilation:
        """The compilation that gave this artifact, as one found in the store."""
        return cls(artifact, from_cache=True)

    def text(self, stage: str) -> str:
        """The program at a stage: stablehlo, optimized, fused, planned, linalg, schedule, llvm, asm (for GPUs
        gpu and ptx), hlo or manifest. Forms are made again from the artifact's StableHLO; nothing is kept for them."""
        if self._stages is None:
            self._stages = Stages(self.artifact)
        return self._stages.text(stage)


@uninterrupted()
def compile_module(
    module: ir.Module,
    *,
    target: Target | None = None,
    name: str | None = None,
    anew: bool = False,
    most_operations: int = MOST_OPERATIONS,
) -> Compilation:
    """Machine code for a module whose public @main takes and gives back arrays, from the store where
    it is there; with `anew`, what the store has is replaced.

    The module is left as it is. Raises CompileError naming the op that can't be compiled, or the
    function that has more than `most_operations` with its calls inlined.
    """
    target = target or Target.host()
    name = name or _name_of(module)
    store = default_store()
    text = to_text(module, debug_info=True)
    if "dense_resource<" in text or "sparse<" in text:
        module = parse(write_sparse_as_dense(inline_resources(text)))
    if store is not None:
        key = artifact_key(to_bytecode(module, debug_info=False), target, name)
        found = None if anew else _stored(store, key)
        if found is not None:
            return Compilation(found, from_cache=True)
    check_inlined_size(module, most_operations)
    workers.expect(text.count("\n"), target)  # about as many operations
    work, source = working_copy(module), to_bytecode(module)
    artifact = _compiled(work, source, text, target, name, store, anew)
    if store is not None:
        store.put(_KIND, key, artifact.to_bytes())
    return Compilation(artifact, from_cache=False)


@uninterrupted()
def compile_own_module(
    module: ir.Module,
    *,
    target: Target | None = None,
    name: str,
    anew: bool = False,
    most_operations: int = MOST_OPERATIONS,
) -> Compilation:
    """The same for a module that is known to be valid and that nobody needs afterwards: it is used
    up, and whether the store has it is for the caller to know, by a name of its own."""
    check_inlined_size(module, most_operations)
    source = to_bytecode(module)
    make_ready(module)
    target = target or Target.host()
    ops, store = spelled_ops(module), default_store()
    artifact = _compiled(module, source, ops, target, name, store, anew)
    return Compilation(artifact, from_cache=False)


def _compiled(
    work: ir.Module,
    source: bytes,
    text: str,
    target: Target,
    name: str,
    store: Store | None,
    anew: bool = False,
) -> Artifact:
    """The artifact of a module, which is used up; `source` and `text` are of what it was, `text` as
    `run_optimize` asks for it."""
    with instrumentation.compiling(name) as watch, Kernels(target, store, anew=anew) as kernels:
        plan = functools.partial(_planned, watch=watch, target=target, kernels=kernels)
        if watch.dump is None:
            planned = checked_if_it_fails(
                lambda: plan(work, text), lambda: plan(working_copy(parse(source)), None)
            )
        else:  # nothing is dumped twice
            planned = plan(work, text)
        built = _built(planned.module, target, kernels)

    manifest = {
        "abi_version": ABI_VERSION,
        "name": name,
        **built.manifest,
        **_memory(planned, built),
        "kernels": _kernel_rows(planned.module, built.symbols),
        "cost": planned.cost.as_dict(),
        "target": target.describe(),
        "versions": versions(),
        "pipeline": {stage: list(map(str, passes)) for stage, passes in ALL_PIPELINES.items()},
    }
    artifact = Artifact(manifest, built.objects, source)
    Stages(artifact).dump(watch)
    return artifact


def _built(planned: ir.Module, target: Target, kernels: Kernels) -> BuiltProgram:
    """A planned program's objects, by the backend of its target: the other is not even imported."""
    if target.kind == "cuda":
        from lamina.backends.cuda.program import build_program as build_for_cuda

        return build_for_cuda(planned, target)
    from lamina.backends.cpu.program import build_program as build_for_cpu

    return build_for_cpu(planned, target, kernels)


class _Planned(Record):
    """A module in its last form, and what was seen on the way."""

    module: ir.Module
    signature: _Signature
    cost: cost.Cost


def _planned(
    module: ir.Module, text: str | None, watch: Instrumentation, target: Target, kernels: Kernels
) -> _Planned:
    if target.kind == "cpu":
        write_machine(module, target.machine)
    run_optimize(module, watch, target.kind, text)
    signature = _signature(module)
    counted = cost.Counter(module).main()
    counted.bytes_accessed = run_fuse(module, watch, target.kind).main().bytes_accessed
    if target.kind == "cpu":
        kernels.offer(module)
    run_plan(module, watch, target.kind)
    return _Planned(module, signature, counted)


def artifact_key(code: bytes, target: Target, name: str) -> str:
    """The name in the store of what this bytecode (without locations) compiles to."""
    rest = "\0".join((repr(target), name, repr(sorted(versions().items()))))
    return hashlib.sha256(rest.encode() + b"\0" + code).hexdigest()


def _stored(store: Store, key: str) -> Artifact | None:
    data = store.get(_KIND, key)
    if data is None:
        return None
    try:
        return Artifact.from_bytes(data)
    except ArtifactError:  # of an older build, say: it is compiled again and replaced
        return None


def _name_of(module: ir.Module) -> str:
    attributes = module.operation.attributes
    return attributes["sym_name"].value if "sym_name" in attributes else "module"


# What the manifest says


class _Signature(Record):
    inputs: list[dict[str, Any]]
    outputs: list[dict[str, Any]]


def _signature(module: ir.Module) -> _Signature:
    functions = ir.SymbolTable(module.operation)
    if "main" not in functions:
        raise CompileError.at(module.operation, "has no public function @main")
    main = functions["main"].operation
    of = main.attributes["function_type"].value
    inputs = [_array(kind, main) for kind in of.inputs]
    outputs = [_array(kind, main) for kind in of.results]
    for name, attributes in (("arg_attrs", inputs), ("res_attrs", outputs)):
        if name in main.attributes:
            for row, given in zip(attributes, main.attributes[name]):
                if "jax.result_info" in given and isinstance(
                    given["jax.result_info"], ir.StringAttr
                ):
                    row["name"] = given["jax.result_info"].value
    return _Signature(inputs, outputs)


def _array(of: ir.Type, main: ir.Operation) -> dict[str, Any]:
    try:
        found = {"dtype": dtype_of(of).name, "shape": list(shape_of(of))}
    except (TypeError, AttributeError):
        raise CompileError.at(main, f"takes or returns {of}; only arrays are supported") from None
    if DYNAMIC in found["shape"]:
        raise CompileError.at(main, f"takes or returns {of}, whose size is not known")
    return found


def _memory(planned: _Planned, built: BuiltProgram) -> dict[str, Any]:
    main, signature = main_of(planned.module), planned.signature
    arena = main.attributes[ARENA_BYTES].value + built.scratch_bytes
    types = main.attributes["function_type"].value.inputs
    sizes = list(map(byte_size, list(types)[:-1]))
    count = len(signature.inputs)
    aliased = 0
    for position, given in enumerate(main.attributes["arg_attrs"]):
        if ALIAS_OF in given:
            signature.outputs[position - count]["alias_of"] = given[ALIAS_OF].value
            aliased += sizes[position]
    return {
        "inputs": signature.inputs,
        "outputs": signature.outputs,
        "arena_bytes": arena,
        "unused_donations": list(main.attributes[UNUSED_DONATIONS]),
        "memory": {
            "argument": sum(sizes[:count]),
            "output": sum(sizes[count:]),
            "alias": aliased,
            "temp": arena,
            "generated_code": sum(map(len, built.objects.values())),
        },
    }


_NAMED = re.compile(r'loc\("([^"(]+)/[^"/]*"')


def _scope(function: ir.Operation) -> dict[str, str]:
    """The named_scopes around the op that a kernel is named after."""
    found = _NAMED.match(str(function.location))
    return {"scope": found[1]} if found and not found[1].startswith("/") else {}


def _kernel_rows(planned: ir.Module, symbols: dict[str, str]) -> list[dict[str, Any]]:
    """What each kernel does and why it is one, in the order in which they are first called."""
    calls: Counter[str] = Counter()
    buffers: dict[str, int] = {}  # of arguments and results

    def count(op: ir.Operation) -> ir.WalkResult:
        if op.name == "func.call":
            callee = op.attributes["callee"].value
            calls[callee] += 1
            buffers[callee] = len(op.operands)
        return ir.WalkResult.ADVANCE

    main_of(planned).walk(count)
    rows = []
    for name, function in kernels_of(planned).items():
        attributes = function.attributes
        ops = [
            op.operation.name.split(".", 1)[1] for op in function.regions[0].blocks[0].operations
        ]
        rows.append(
            {
                "name": name,
                "symbol": symbols.get(name),
                "calls": calls[name],
                "buffers": buffers.get(name, 0),
                "ops": [op for op in ops if op not in ("return", "constant")],
                **_scope(function),
                **{
                    word: attributes[f"lamina.{word}"].value
                    for word in ("kind", "reason", "library")
                    if f"lamina.{word}" in attributes
                },
            }
        )
    return rows
