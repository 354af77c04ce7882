"""Calls of a jitted function that its fast path does not know: traced, compiled, placed, run."""

from __future__ import annotations

import dataclasses
import functools
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

from lamina import config, guards, value_checks
from lamina.array import ArrayImpl
from lamina.control_flow.jit_call import jit_p
from lamina.core import current_mesh, refs, tree
from lamina.core.jaxpr import ClosedJaxpr, Jaxpr, close_jaxpr, convert_constvars, eval_jaxpr
from lamina.core.trace import Tracer, is_evaluating
from lamina.core.tracebacks import FilteredTracebacks
from lamina.core.value_tables import as_own_arrays
from lamina.interpreters.staging import is_staging
from lamina.jit import programs
from lamina.jit.compiler_options import applied, refuse_nested
from lamina.jit.options import JitOptions
from lamina.jit.traces import TracedCall, shown_name, trace_call
from lamina.key_array import KeyArray, PhysicalEntry, of_fast_path
from lamina.runtime import FastPathEntry


def call_new(options: JitOptions, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a call that the fast path does not know: tracing, new types, odd containers; and what
    the fast path is to run for such calls from now on, None if they are to come here again."""
    if options.in_mesh is not None:
        options, block = options.here()
        if options.in_mesh is None:
            with block:
                return call_new(options, args, kwargs)[0], None
    if config.disable_jit.value:
        return options.fun(*args, **kwargs), None
    if refs.alive:
        from lamina.jit.refs import with_refs

        with FilteredTracebacks():
            call = with_refs(options, args, kwargs)
            if call is not None:
                return call(), None
    if not is_evaluating() or any(isinstance(x, Tracer) for x in tree.leaves((args, kwargs))):
        return _bind(options, args, kwargs), None
    moved = False
    with FilteredTracebacks():
        if options.in_shardings is not None:
            given, args = args, _placed_arguments(options, args, kwargs)
            moved = not programs.are_same(given, args)
        with FilteredTracebacks(tracing=True):
            traced, leaves = trace_call(options, args, kwargs, runs=True)
        guards.check_transfers(leaves)
        leaves = list(as_own_arrays(leaves))
        gpu, target = _where(options, traced, leaves)
        traced = on_mesh_of(traced, leaves)
        requested = requested_of(options, traced, leaves)
        program = _program(options, traced, gpu, target, requested)
        entry = program.entry(traced.out_tree)
        # The results of one that is partitioned lie where these say.
        constraints = {} if program.plan.requested else _constraints(traced.closed.jaxpr)
        guards.refuse_execution(options.name)
        if value_checks.active():
            donated = traced.donated
            return value_checks.checked(options.name, entry, leaves, traced.closed, donated), None
    if config.profiling.value:
        from lamina.profiler import timed_call

        entry = functools.partial(timed_call, f"jit({options.name})", entry)
    if (
        _is_pythons(options, traced, leaves)
        or constraints
        or current_mesh.of_programs() is not None
        or options.out_shardings is not None
        or not isinstance(entry, (FastPathEntry, PhysicalEntry))
        or guards.watching_transfers()
    ):
        out, as_made = _call_placed(options, traced, entry, leaves, constraints)
        learns = as_made and not traced.once and _serves_mesh(program, moved) and not config.profiling.value
        return out, of_fast_path(entry) if learns and not guards.watching_transfers() else None
    # Containers and leaves that the fast path can't read come through here on each call.
    return entry(leaves), None if traced.once else of_fast_path(entry)


def _serves_mesh(program: programs.Program, moved: bool) -> bool:
    """Whether the fast path may run a program on arguments that were placed: one of a mesh, which takes its parts
    of them wherever they lie. What in_shardings moved is not the caller's to be donated or given back."""
    plan = program.plan
    if program.layout is None:
        return False
    return not moved or not (plan.aliases or plan.donors or any(at < 0 for at in plan.outputs))


def _is_pythons(options: JitOptions, traced: TracedCall, leaves: list[Any]) -> bool:
    """Whether some argument is placed otherwise than on one CPU device, of which the fast path knows. Raises
    ValueError where those are of different devices."""
    if not any(isinstance(x, (ArrayImpl, KeyArray)) and x.placement is not None for x in leaves):
        return False
    from lamina import placement

    if not any(map(placement.is_pythons, leaves)):
        return False
    if not placement.are_each_on_one_cpu(leaves):
        return True  # `_call_placed` looks whether their devices are the same
    placement.common_devices(leaves, traced.name_of, shown_name(options))
    return False


def _placed_arguments(
    options: JitOptions, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, ...]:
    from lamina.placement import put_arguments

    if any(name not in options.static_argnames for name in kwargs):
        raise ValueError(
            "pjit does not support kwargs when in_shardings is specified. Those are for positional arguments; "
            f"{options.name} was given {', '.join(sorted(kwargs))} by name"
        )
    dynamic = tuple(x for i, x in enumerate(args) if i not in options.static_argnums)
    placed = iter(put_arguments(dynamic, options.in_shardings, shown_name(options)))
    return tuple(x if i in options.static_argnums else next(placed) for i, x in enumerate(args))


def _constraints(jaxpr: Jaxpr) -> dict[int, Any]:
    """The shardings of results that come straight from a with_sharding_constraint."""
    from lamina.sharding.shardings import divides

    found = {
        e.outvars[0]: e.params["sharding"]
        for e in jaxpr.eqns
        if e.primitive.name == "sharding_constraint"
    }
    return {
        i: found[v]  # type: ignore[index]
        for i, v in enumerate(jaxpr.outvars)
        if found and v in found and divides(found[v], v.aval.shape)  # type: ignore[index]
    }


def _call_placed(
    options: JitOptions, traced: TracedCall, entry: Any, leaves: list[Any], constraints: Any
) -> tuple[Any, bool]:
    """A call with arguments or results that were placed on devices: its results, and whether they are as the
    program made them."""
    from lamina import placement
    from lamina.sharding.explicit import on_devices

    mesh = placement.common_devices(leaves, traced.name_of, shown_name(options))  # before anything is donated
    placements = placement.by_shape(leaves)
    made = entry(leaves)
    out = placement.place_results(mesh, placements, made)
    if constraints:
        flat, treedef = tree.flatten(out)
        meshes = [getattr(mesh, "mesh", None)]
        flat = [
            placement.put_value(x, on_devices(constraints[i], meshes)) if i in constraints else x
            for i, x in enumerate(flat)
        ]
        out = tree.unflatten(treedef, flat)
    if options.out_shardings is not None:
        out = placement.put_results(out, options.out_shardings)
    return out, programs.are_same(made, out)


def _where(options: JitOptions, traced: TracedCall, leaves: list[Any]) -> tuple[Any, Any]:
    """The GPU that runs a call, None for the CPU, and what it is compiled for; arguments that belong
    on a GPU are put there."""
    from lamina import placement

    device, target = options.device, options.target
    if device is None and target is not None:
        device = target.kind
    gpu = placement.device_of(leaves) if device is None else placement.gpu_named(device)
    if gpu is not None:
        placement.settle(leaves, traced.name_of, shown_name(options))
    kind = "cpu" if gpu is None else "cuda"
    return gpu, target if target is not None and target.kind == kind else None


def on_mesh_of(
    traced: TracedCall, leaves: list[Any], wanted: Sequence[Any] = (), *, ahead: bool = False
) -> TracedCall:
    """A traced call on the devices of its arguments, where it has shard_maps over axes alone; else itself. `wanted`
    and `ahead` as of `requested_of`."""
    from lamina.sharding.without_devices import with_devices

    closed = with_devices(traced.closed, _places(leaves, wanted), ahead=ahead)
    if closed is traced.closed:
        return traced
    if closed not in traced.on_meshes:
        traced.on_meshes[closed] = dataclasses.replace(traced, closed=closed, programs={}, on_meshes={})
    return traced.on_meshes[closed]


def _places(leaves: list[Any], wanted: Sequence[Any]) -> Iterator[Any]:
    """Where arguments lie or are to, as far as that is known: looked up as they are asked for."""
    from lamina import placement

    said = [*wanted, *[None] * (len(leaves) - len(wanted))]
    return (given or placement.place_of(x) for given, x in zip(said, leaves, strict=True))


def requested_of(
    options: JitOptions,
    traced: TracedCall,
    leaves: list[Any],
    wanted: Sequence[Any] = (),
    *,
    ahead: bool = False,
) -> Any:
    """What is asked of a program that is to be partitioned; None for others. `wanted` are the shardings
    that in_shardings say, where the leaves have not been put there; `ahead`: it is not called now."""
    from lamina import placement
    from lamina.sharding.requested import requested_shardings

    return requested_shardings(
        traced.closed,
        list(_places(leaves, wanted)),
        placement.places_of(options.out_shardings, traced.out_tree),
        traced.name_of,
        shown_name(options),
        ahead=ahead,
    )


def _program(
    options: JitOptions, traced: TracedCall, device: Any, target: Any, requested: Any
) -> programs.Program:
    key = (device, target, options.settings, requested)
    program = traced.programs.get(key)
    if program is None:
        with applied(options.settings):
            program = traced.programs[key] = programs.compile_program(
                traced.closed,
                traced.name,
                donated=traced.donated,
                keep_unused=traced.keep_unused,
                arg_names=traced.arg_names,
                result_paths=traced.result_paths,
                device=device,
                target=target,
                requested=requested,
            )
    return program


def _bind(options: JitOptions, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Within another transformation: an equation that calls the traced function."""
    refuse_nested(options.settings, options.name)
    traced, leaves = trace_call(options, args, kwargs)
    if options.in_shardings is not None:
        leaves = _constrained(leaves, wanted_of_arguments(options, args))
    consts = traced.closed.consts
    if options.inline and (is_staging() or len(traced.closed.jaxpr.eqns) == 1):
        outs = eval_jaxpr(traced.closed.jaxpr, consts, *leaves)
    else:
        outs = jit_p.bind(
            *consts,
            *leaves,
            jaxpr=_hoisted(traced),
            name=options.name,
            keep_unused=options.keep_unused,
            donated_invars=(False,) * len(consts) + traced.donated,
        )
    if options.out_shardings is not None:
        from lamina.placement import places_of

        outs = _constrained(outs, places_of(options.out_shardings, traced.out_tree))
    return tree.unflatten(traced.out_tree, outs)


def _constrained(values: Sequence[Any], places: Sequence[Any]) -> list[Any]:
    """Values of a surrounding program that are to lie so, as far as there are places."""
    from lamina.placement import constrain

    rest = [None] * (len(values) - len(places))
    pairs = zip(values, [*places, *rest], strict=True)
    return [x if place is None else constrain(x, place) for x, place in pairs]


def wanted_of_arguments(options: JitOptions, args: tuple[Any, ...]) -> list[Any]:
    """The shardings that in_shardings say, for the leaves of the positional arguments."""
    from lamina.placement import POSITIONAL, places_of

    if options.in_shardings is None:
        return []
    dynamic = tuple(x for i, x in enumerate(args) if i not in options.static_argnums)
    shardings = options.in_shardings
    shardings = tuple(shardings) if isinstance(shardings, list) else shardings
    return places_of(shardings, tree.structure(dynamic), "in_shardings", POSITIONAL)


_hoisted_memory: weakref.WeakKeyDictionary[Jaxpr, ClosedJaxpr] = weakref.WeakKeyDictionary()


def _hoisted(traced: TracedCall) -> ClosedJaxpr:
    found = _hoisted_memory.get(traced.closed.jaxpr)
    if found is None:
        found = close_jaxpr(convert_constvars(traced.closed.jaxpr))
        _hoisted_memory[traced.closed.jaxpr] = found
    return found
