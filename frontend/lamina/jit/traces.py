"""What jit remembers of a function: a trace for each kind of arguments."""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Callable, Sequence
from dataclasses import field
from time import perf_counter as clock
from typing import Any

from lamina import config, log_lines, monitoring, shape_dtype
from lamina.control_flow.tracing import arg_names, check_outputs, debug_info
from lamina.core import axes, current_mesh, garbage, tree
from lamina.core.avals import ShapedArray
from lamina.core.jaxpr import ClosedJaxpr
from lamina.core.library import library
from lamina.core.placed import is_undecided
from lamina.core.trace import Tracer, get_aval, is_array_like, makes_array
from lamina.core.wrapping import function_name, named_place
from lamina.interpreters.staging import AtHand, trace_to_jaxpr
from lamina.jit.options import JitOptions
from lamina.records import Record


class TracedCall(Record, frozen=False):
    """A function traced for one kind of arguments. Does not hold the function, which is the weak
    key under which this is remembered."""

    closed: ClosedJaxpr
    in_tree: tree.PyTreeDef
    out_tree: tree.PyTreeDef
    donated: tuple[bool, ...]
    arg_names: tuple[str, ...]
    result_paths: tuple[str, ...]
    name: str
    keep_unused: bool
    once: bool = False
    """Whether it is for one call alone, since Python has looked at values of its arguments."""
    programs: dict[Any, Any] = field(default_factory=dict)
    """The programs.Program for each device, target and settings of a jit's own, once compiled."""
    on_meshes: dict[ClosedJaxpr, TracedCall] = field(default_factory=dict)
    """The same with the devices of arguments, where it has shard_maps over axes alone."""

    def name_of(self, leaf: int) -> str:
        """The name of an argument, as messages write it."""
        return self.arg_names[leaf] if leaf < len(self.arg_names) else f"leaf {leaf}"


jitted: weakref.WeakSet[Any] = weakref.WeakSet()
_MAX_TRACES = 4096  # of one function
_traces: weakref.WeakKeyDictionary[Any, dict[Any, TracedCall]] = weakref.WeakKeyDictionary()


def _split_static(
    options: JitOptions, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[dict[int, Any], dict[str, Any], tuple[Any, ...], dict[str, Any]]:
    static_args = {i: args[i] for i in options.static_argnums if i < len(args)}
    static_kwargs = {k: v for k, v in kwargs.items() if k in options.static_argnames}
    for value, where in [(v, f"index {i}") for i, v in static_args.items()] + [
        (v, f"name {k!r}") for k, v in static_kwargs.items()
    ]:
        try:
            hash(value)
        except TypeError:
            raise ValueError(
                "Non-hashable static arguments are not supported. An error occurred while trying to "
                f"hash an object of type {type(value)}, {value} at {where}. Static values are part of "
                "the key under which the compiled program is kept: pass a tuple instead of a list, or "
                "leave the argument traced."
            ) from None
    dynamic = tuple(x for i, x in enumerate(args) if i not in static_args)
    dynamic_kwargs = {k: v for k, v in kwargs.items() if k not in static_kwargs}
    return static_args, static_kwargs, dynamic, dynamic_kwargs


def shown_name(options: JitOptions) -> str:
    """The function's name as messages write it; `options.name` is fit for IR."""
    return function_name(options.fun)


def trace_call(
    options: JitOptions, args: tuple[Any, ...], kwargs: dict[str, Any], *, runs: bool = False
) -> tuple[TracedCall, list[Any]]:
    """The trace for these arguments (from memory if there is one), and their leaves. `runs`: it is for a call with
    these values."""
    static_args, static_kwargs, dynamic, dynamic_kwargs = _split_static(options, args, kwargs)
    leaves, in_tree = tree.flatten((dynamic, dynamic_kwargs))
    avals = []
    for i, x in enumerate(leaves):
        if makes_array(x) and not is_array_like(x):
            raise ValueError(
                f"{shown_name(options)} was given a {type(x).__name__}, which makes an array of itself "
                "(__jax_array__) but is no pytree. Triggering __jax_array__() during abstractification is "
                f"no longer supported: pass {library}.numpy.asarray(x), or register the class by "
                f"{library}.tree_util.register_dataclass or register_pytree_node."
            )
        try:
            if isinstance(x, ShapedArray):
                avals.append(x)
            else:
                avals.append(x.aval if isinstance(x, shape_dtype.ShapeDtypeStruct) else get_aval(x))
        except (TypeError, OverflowError) as e:
            names = arg_names(options.fun, args, kwargs)
            where = names[i] if not static_args and i < len(names) else f"leaf {i}"
            if isinstance(e, OverflowError):
                raise OverflowError(
                    "An overflow was encountered while parsing an argument to a jitted computation, "
                    f"whose argument path is {where}. Got {type(x)} with value {x}. {e}"
                ) from None
            raise TypeError(
                f"Error interpreting argument to {shown_name(options)} as an abstract array. The problematic "
                f"value is of type {type(x)} and was passed to the function at path {where}. {e}\n"
                "If it is a setting rather than data, mark it static (static_argnums or "
                "static_argnames); if its class holds arrays, tell of them by "
                f"{library}.tree_util.register_dataclass or register_pytree_node."
            ) from None
    static_key = tuple((i, type(v), v) for i, v in static_args.items()) + tuple(
        (k, type(v), v) for k, v in sorted(static_kwargs.items())
    )
    key = (
        in_tree,
        tuple(avals),
        static_key,
        len(args),
        options.donate_argnums,
        options.donate_argnames,
        options.keep_unused,
        options.inline,
        config.trace_key(),
        axes.bound(),
        current_mesh.key(),
        is_undecided(),
    )
    memory = _memory_of(options)
    found = memory.get(key)
    if found is not None:
        return found, leaves
    begin, before = clock(), list(memory)
    try:
        with garbage.held_off():
            at_hand = AtHand(leaves) if runs else None
            traced = _trace(options, args, kwargs, static_args, static_kwargs, in_tree, avals, at_hand)
    finally:
        if before and config.logs("retrace"):
            _explain_retrace(options, key, before, clock() - begin)
    if not traced.once and not any(isinstance(c, Tracer) for c in traced.closed.consts):
        memory[key] = traced
        if len(memory) > _MAX_TRACES:
            memory.pop(next(iter(memory)), None)  # the oldest
    return traced, leaves


def _memory_of(options: JitOptions) -> dict[Any, TracedCall]:
    try:
        return _traces.setdefault(options.fun, {})
    except TypeError:  # not weakly referable or not hashable: remember with this jit alone
        return _traces.setdefault(options, {})


def clear_cache(options: JitOptions, clear_fast_path: Callable[[], None]) -> None:
    """Forgets the traces and the programs of the function."""
    _memory_of(options).clear()
    clear_fast_path()


def forget_all_programs() -> None:
    """Forgets the traces and programs of all functions, as `clear_cache` those of one."""
    for function in list(jitted):
        function.clear_cache()
    _traces.clear()


def _trace(
    options: JitOptions,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    static_args: dict[int, Any],
    static_kwargs: dict[str, Any],
    in_tree: tree.PyTreeDef,
    avals: Sequence[ShapedArray],
    at_hand: AtHand | None,
) -> TracedCall:
    out: list[Any] = []
    fun = options.fun

    def flat(*leaves: Any) -> list[Any]:
        dynamic, dynamic_kwargs = tree.unflatten(in_tree, leaves)
        given = iter(dynamic)
        full = [static_args[i] if i in static_args else next(given) for i in range(len(args))]
        result = fun(*full, **static_kwargs, **dynamic_kwargs)
        flat_out, out_tree = tree.flatten(result)
        check_outputs(flat_out, named_place(options.fun))
        out[:] = [out_tree, tree.paths(result)]
        return flat_out

    info = debug_info(fun, "jit")
    names = arg_names(fun, args, kwargs) if not static_args and not static_kwargs else ()
    with monitoring.measured(monitoring.TRACE, fun_name=options.name):
        closed = trace_to_jaxpr(flat, avals, dataclasses.replace(info, arg_names=names), at_hand)
    return TracedCall(
        closed,
        in_tree,
        out[0],
        _donated(options, args, kwargs),
        names,
        tuple(out[1]),
        options.name,
        options.keep_unused,
        once=at_hand is not None and at_hand.was_asked,
    )


def _donated(
    options: JitOptions, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[bool, ...]:
    flags: list[bool] = []
    for i, x in enumerate(args):
        if i not in options.static_argnums:
            flags += [i in options.donate_argnums] * len(tree.leaves(x))
    for k in sorted(kwargs):
        if k not in options.static_argnames:
            flags += [k in options.donate_argnames] * len(tree.leaves(kwargs[k]))
    return tuple(flags)


def _explain_retrace(options: JitOptions, key: Any, known: Sequence[Any], seconds: float) -> None:
    """LAMINA_LOG=retrace: which part of the key is new, and how long tracing took."""
    parts = (
        "structure of the arguments",
        "shapes, dtypes or weak types",
        "static values",
        "number of positional arguments",
        "donated positions",
        "donated names",
        "keep_unused",
        "inline",
        "settings (x64, ...)",
        "named axes",
        "current mesh",
        "whether shardings of results are said outside",
    )
    best = min(known, key=lambda old: sum(a != b for a, b in zip(old, key, strict=True)))
    changed = [p for p, a, b in zip(parts, best, key, strict=True) if a != b]
    details = []
    if best[1] != key[1] and len(best[1]) == len(key[1]):
        for i, (a, b) in enumerate(zip(best[1], key[1], strict=True)):
            if a != b:
                details.append(f"leaf {i}: {a!r} before, {b!r} now")
    elif best[2] != key[2]:
        details.append(f"static values before {best[2]}, now {key[2]}")
    text = f"{options.name} is traced again: new {', '.join(changed)}"
    log_lines.write("retrace", seconds, text, details)
