"""Programs: compiled or found in the disk store, and what calls of them run."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from time import perf_counter as clock
from typing import TYPE_CHECKING, Any

from lamina import config, guards, log_lines, monitoring, value_checks
from lamina.array import Device, first_gpu
from lamina.core import current_mesh, garbage, tree
from lamina.core.jaxpr import ClosedJaxpr
from lamina.core.placed import is_undecided
from lamina.core.primitive import Primitive
from lamina.core.trace import Tracer, get_aval
from lamina.core.tracebacks import FilteredTracebacks
from lamina.core.value_tables import as_own_arrays
from lamina.core.weak_cache import cache_on_jaxpr
from lamina.jit.program_key import program_key
from lamina.jit.program_plan import Plan, beyond_memory, plan_program
from lamina.key_array import KeyArray, PhysicalEntry, as_logical, of_fast_path
from lamina.records import Record
from lamina.runtime import CompiledFunction, FastPathEntry, processes
from lamina.runtime.deferred import DeferredProgram

if TYPE_CHECKING:
    from lamina.backends.compile import Compilation
    from lamina.runtime.artifact import Artifact
    from lamina.sharding.layout import Layout


class Program(Record, frozen=False):
    """A compiled program with what is needed to call it on the leaves of a call."""

    plan: Plan
    executable: Any
    compilation: Compilation | None
    device: Device | None = None  # the GPU it is loaded on
    layout: Layout | None = None  # of a program that several devices run

    def entry(self, out_tree: tree.PyTreeDef) -> Any:
        """What the call fast path runs; a function of the leaves for programs that are loaded when they are
        called."""
        if isinstance(self.executable, DeferredProgram):
            return functools.partial(self._load_and_call, out_tree)
        executable, mesh = self.executable, None
        if self.layout is not None and not self.plan.computes:
            executable = _no_results
        elif self.layout is not None:
            from lamina.sharding.execution import on_mesh

            mesh = on_mesh(self.plan, executable, self.layout)
        logical = {i: dtype for i, dtype in enumerate(self.plan.logical_out) if dtype is not None}
        template = _template(out_tree)
        if logical:
            template = functools.partial(_as_logical, out_tree, logical)
        entry = FastPathEntry(
            executable,
            self.plan.kept,
            () if mesh is not None else tuple(map(self._constant, self.plan.const_args)),
            out_tree=template,
            weak_types=self.plan.weak_types,
            outputs=self.plan.outputs,
            mesh=mesh,
        )
        return PhysicalEntry(entry) if self.plan.physical_in else entry

    def _constant(self, value: Any) -> Any:
        array = _as_array(value)
        if self.device is None:
            return array
        from lamina.runtime import to_device

        return to_device(array, self.device.gpu_number)

    def _load_and_call(self, out_tree: tree.PyTreeDef, leaves: Sequence[Any]) -> Any:
        program = self.executable
        if isinstance(program, DeferredProgram):
            self.executable = program.executable()
            self.device = first_gpu() if program.on_gpu else None
        return self.entry(out_tree)(leaves)


def _no_results(args: list[Any]) -> list[Any]:
    return []


def _as_array(value: Any) -> Any:
    from lamina.runtime import to_array

    return to_array(value)


def _as_logical(out_tree: tree.PyTreeDef, dtypes: dict[int, Any], leaves: list[Any]) -> Any:
    return tree.unflatten(out_tree, as_logical(leaves, dtypes))


def _template(out_tree: tree.PyTreeDef) -> Any:
    """The result's structure holding 0, 1, 2, ..., or a function that builds it where the fast path
    does not know a container in it."""
    sample = tree.unflatten(out_tree, list(range(out_tree.num_leaves)))
    return sample if _plain(sample) else functools.partial(tree.unflatten, out_tree)


def _plain(x: Any) -> bool:
    if x is None or type(x) is int:
        return True
    if type(x) is dict:
        return all(map(_plain, x.values()))
    return type(x) in (tuple, list) and all(map(_plain, x))


def compile_program(
    closed: ClosedJaxpr,
    name: str,
    *,
    donated: Sequence[bool] = (),
    keep_unused: bool = False,
    arg_names: Sequence[str] = (),
    result_paths: Sequence[str] = (),
    device: Any = None,
    target: Any = None,
    requested: Any = None,
) -> Program:
    """Compiles a jaxpr for the host or for a GPU (`device`, for `target` where that is given), or
    finds it in the disk store. `requested` are the RequestedShardings of one that is partitioned."""
    with garbage.held_off():
        plan = plan_program(closed, name, donated, keep_unused, arg_names, result_paths, requested)
        return build(plan, target=target, device=device)


def _target_of(device: Any) -> Any:
    """What is compiled for on a GPU."""
    from lamina.backends.target import Target
    from lamina.runtime.gpus import capability

    chosen = os.environ.get("LAMINA_CUDA_ARCH")
    if chosen:
        return Target("cuda", chosen)
    return Target.of_capability(*capability(device.gpu_number))


def build(
    plan: Plan, module: Any = None, target: Any = None, device: Any = None, lowered: Any = None
) -> Program:
    """Compiles a plan, or its module as given, for a target: by default this machine, or the GPU
    that it is loaded on. `lowered` is the plan's module where that is there already; it stays. A program over
    a mesh is for its devices."""
    from lamina.runtime.artifact import Artifact, ArtifactError
    from lamina.runtime.executable import LoadError
    from lamina.runtime.store import default_store

    mesh = _mesh_of(plan)
    number: Numbers = None
    if mesh is not None:
        device, target, number = _of_mesh(mesh, target)
    elif device is not None:
        number = device.gpu_number
    if not plan.computes and target is None:
        return Program(plan, _no_results, None, None, _layout_of(plan, None))
    if device is not None and target is None:
        target = _target_of(device)
    given, begin = module is not None, clock()
    store = None if given else default_store()
    key = program_key(plan, target) if store is not None else None
    anew = False
    if store is not None and key is not None:
        data = store.get("alias", key)
        if data is not None:
            try:
                artifact = Artifact.from_bytes(data)
                executable = _loaded(artifact, (), number)
            except (ArtifactError, LoadError):  # what is stored is no program: it is replaced
                anew = True
            else:
                log_lines.write("cache", clock() - begin, f"{plan.name}: found in {store.directory}")
                monitoring.record_event(monitoring.CACHE_HIT, fun_name=plan.name)
                layout = _layout_of(plan, artifact.manifest)
                return Program(plan, executable, _compilation_of(artifact), device, layout)
    from lamina.backends.workers import expect

    if plan.requested is not None:
        from lamina import partitioning

        partitioning.begin()
    if module is None:  # they start while this process imports the compiler
        expect(len(plan.closed.jaxpr.eqns), target)
    from lamina.backends.compile import compile_module, compile_own_module

    if store is not None:
        monitoring.record_event(monitoring.CACHE_MISS, fun_name=plan.name)
    # One that the store knows by the jaxpr is not looked up there by its module as well; without a
    # store none is.
    is_looked_up = given or (store is not None and key is None)
    compile_ = compile_module if is_looked_up else compile_own_module
    try:
        if module is None:
            with monitoring.measured(monitoring.LOWER, fun_name=plan.name):
                if lowered is None:
                    module = plan.lower()
                else:  # partitioning leaves it as it is
                    module = _copy_of(lowered) if plan.requested is None else lowered
        found = None
        if plan.requested is not None:
            from lamina.partitioning.programs import partition_module

            module, found = partition_module(plan, module)
        with monitoring.measured(monitoring.COMPILE, fun_name=plan.name):
            compilation = compile_(
                module,
                target=target,
                name=f"jit_{plan.name}",
                anew=anew,
                most_operations=config.program_operations.value,
            )
    except Exception:
        too_large = beyond_memory(plan.closed)
        if too_large is None:
            raise
        raise too_large from None
    log_lines.write(
        "compile",
        clock() - begin,
        f"{plan.name}: {len(plan.closed.jaxpr.eqns)} equations"
        + (", found in the store" if compilation.from_cache else ""),
    )
    if found is not None:
        compilation.artifact.manifest["layout"] = found
    layout = _layout_of(plan, compilation.artifact.manifest)
    if store is not None and key is not None:
        store.put("alias", key, compilation.artifact.to_bytes())
    executable = _loaded(compilation.artifact, plan.callbacks, number)
    return Program(plan, executable, compilation, device, layout)


Numbers = int | tuple[int, ...] | None
"""Of the GPU that a program is loaded on, or those of its mesh."""


def _loaded(artifact: Artifact, callbacks: Sequence[Any], number: Numbers) -> Any:
    from lamina.runtime.executable import load_compiled, load_on_gpus

    if isinstance(number, tuple):
        return load_on_gpus(artifact, callbacks, number)
    return load_compiled(artifact, callbacks, number)


def _mesh_of(plan: Plan) -> Any:
    """The mesh whose devices run a program together; None for other programs."""
    if plan.requested is not None:
        return plan.requested.mesh
    return None if plan.local is None else plan.local.mesh


def _of_mesh(mesh: Any, target: Any) -> tuple[Device | None, Any, tuple[int, ...] | None]:
    """The device that a mesh's program is compiled for, for what, and the numbers of those that are GPUs."""
    devices = mesh.device_list
    on_gpus = devices[0].platform == "cuda"
    if not on_gpus:
        return None, target, None
    target = target if target is not None and target.kind == "cuda" else None
    rank = processes.current().rank
    here = next((d for d in devices if d.process_index == rank), devices[0])
    return here, target, tuple(d.id for d in devices)


def _layout_of(plan: Plan, manifest: Any) -> Layout | None:
    """That of a program that was compiled before, or computes nothing (manifest None)."""
    if plan.requested is not None:
        from lamina.sharding.layout import layout_of_rows, without_work

        if manifest is None:
            return without_work(plan.requested.mesh)
        return layout_of_rows(plan.requested, manifest["layout"])
    if plan.local is not None:
        from lamina.sharding.layout import layout_of_localized

        return layout_of_localized(plan)
    return None


def _copy_of(module: Any) -> Any:
    from lamina.dialects.context import parse
    from lamina.dialects.serialize import to_bytecode

    return parse(to_bytecode(module))  # in a seventh of the time of lowering


def _compilation_of(artifact: Any) -> Any:
    from lamina.jit.compiled_text import StoredCompilation

    return StoredCompilation(artifact)


@cache_on_jaxpr
def _jaxpr_entry(closed: ClosedJaxpr, name: str, device: Any, requested: Any) -> FastPathEntry:
    out_tree = tree.structure([0] * len(closed.jaxpr.outvars))
    return compile_program(closed, name, device=device, requested=requested).entry(out_tree)


def _on_mesh_of(closed: ClosedJaxpr, args: Sequence[Any]) -> ClosedJaxpr:
    """A program on the devices of its operands, where it has shard_maps over axes alone; else itself."""
    from lamina.placement import place_of
    from lamina.sharding.without_devices import with_devices

    return with_devices(closed, map(place_of, args))


def _requested_of(closed: ClosedJaxpr, name: str, args: Sequence[Any]) -> Any:
    """What is asked of a program on these operands that is to be partitioned; None for others."""
    from lamina.placement import place_of
    from lamina.sharding.requested import requested_shardings

    results = [None] * len(closed.jaxpr.outvars)
    places = list(map(place_of, args))
    return requested_shardings(closed, places, results, lambda i: f"operand {i}", name)


def _device_of(args: Sequence[Any], name: str) -> Any:
    """The GPU that runs a program on these operands, which are put there; None for the CPU."""
    from lamina import placement

    device = placement.device_of(args)
    if device is not None:
        placement.settle(args, lambda i: f"operand {i}", name)
    return device


def run_jaxpr(closed: ClosedJaxpr, name: str, args: Sequence[Any]) -> list[Any]:
    """Runs a jaxpr, compiled once."""
    for x in args:
        if isinstance(x, Tracer):
            from lamina.interpreters.staging import raise_leaked

            raise_leaked(x)
    guards.check_transfers(args)
    guards.refuse_execution(name)
    args = as_own_arrays(args)
    device = _device_of(args, name)
    closed = _on_mesh_of(closed, args)
    requested = _requested_of(closed, name, args)
    entry = _jaxpr_entry(closed, name, device, requested)
    if value_checks.active():
        return value_checks.checked(name, entry, args, closed)
    if current_mesh.of_programs() is not None:
        return _run_placed(name, entry, args)[0]  # type: ignore[no-any-return]
    return entry(args)


def compile_primitive(primitive: Primitive, params: dict[str, Any]) -> Callable[..., Any]:
    """The function that applies one primitive to arrays; compiles once for each types of operands."""
    from lamina.interpreters.staging import trace_to_jaxpr

    of_places: dict[Any, Any] = {}  # by types and shardings

    def miss(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        guards.check_transfers(args)
        guards.refuse_execution(primitive.name)
        args = tuple(as_own_arrays(args))
        device = _device_of(args, primitive.name)
        if of_places and not value_checks.active():
            entry = of_places.get(_key_of_places(args))
            if entry is not None:
                return _run_placed(primitive.name, entry, args)[0], None
        for x in args:
            if isinstance(x, Tracer):
                from lamina.interpreters.staging import raise_leaked

                raise_leaked(x)

        def fun(*tracers: Any) -> list[Any]:
            out = primitive.bind(*tracers, **params)
            return list(out) if primitive.multiple_results else [out]

        with FilteredTracebacks(tracing=True):
            closed = trace_to_jaxpr(fun, [get_aval(x) for x in args])
        closed = _on_mesh_of(closed, args)
        out: Any = list(range(len(closed.jaxpr.outvars))) if primitive.multiple_results else 0
        requested = _requested_of(closed, primitive.name, args)
        program = compile_program(closed, primitive.name, device=device, requested=requested)
        entry = program.entry(tree.structure(out))
        if value_checks.active():
            return value_checks.checked_primitive(primitive, params, entry, list(args)), None
        from lamina import placement

        if (
            not placement.are_each_on_one_cpu(args)
            or current_mesh.of_programs() is not None
            or guards.watching_transfers()
        ):
            if len(of_places) >= _MOST_PLACED:
                of_places.clear()
            of_places[_key_of_places(args)] = entry
            out, as_made = _run_placed(primitive.name, entry, args)
            learns = as_made and program.layout is not None and not guards.watching_transfers()
            return out, of_fast_path(entry) if learns else None
        placement.common_devices(args, _operand, primitive.name)
        return entry(list(args)), of_fast_path(entry)

    return CompiledFunction(miss)


def _key_of_places(args: Sequence[Any]) -> tuple[Any, ...]:
    from lamina.placement import place_of

    return (tuple(map(get_aval, args)), tuple(map(place_of, args)), current_mesh.key(), is_undecided())


_MOST_PLACED = 256  # programs of one operation, for operands that were placed


def _operand(number: int) -> str:
    return f"operand {number}"


def _run_placed(name: str, entry: Any, args: Sequence[Any]) -> tuple[Any, bool]:
    """The results of an operation on operands that were placed, as they are, and whether they are as it made them."""
    from lamina import placement

    found = placement.common_devices(args, _operand, name)
    made = entry(list(args))
    out = placement.place_results(found, placement.by_shape(args), made)
    return out, are_same(made, out)


def are_same(made: Any, out: Any) -> bool:
    """Whether two trees of results have the same arrays: where placing them did nothing, it is not needed."""
    pairs = zip(tree.leaves(made), tree.leaves(out), strict=True)
    return all(a is b or (type(a) is KeyArray and a.packed is b.packed) for a, b in pairs)
