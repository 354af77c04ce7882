"""jit: traces a function once for each kind of arguments and runs what the compiler makes of it."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from lamina import config, monitoring, programs, shape_dtype, stages, value_checks
from lamina.array import Array
from lamina.control_flow.jit_call import jit_p
from lamina.control_flow.tracing import arg_names, check_outputs, debug_info
from lamina.core import axes, garbage, refs, tree
from lamina.core.avals import ShapedArray
from lamina.core.jaxpr import ClosedJaxpr, Jaxpr, close_jaxpr, convert_constvars, eval_jaxpr
from lamina.core.trace import Tracer, get_aval, is_evaluating
from lamina.interpreters.staging import is_staging, trace_to_jaxpr
from lamina.key_array import KeyEntry
from lamina.runtime import CompiledFunction, FastPathEntry
from lamina.tracebacks import FilteredTracebacks


@dataclasses.dataclass(frozen=True, eq=False)
class JitOptions:
    """What the user told jit."""

    fun: Callable[..., Any]
    static_argnums: tuple[int, ...]
    static_argnames: tuple[str, ...]
    donate_argnums: tuple[int, ...]
    donate_argnames: tuple[str, ...]
    keep_unused: bool
    inline: bool
    in_shardings: Any = None
    out_shardings: Any = None
    device: Any = None
    target: Any = None

    @property
    def name(self) -> str:
        inner = inspect.unwrap(self.fun)
        while isinstance(inner, functools.partial):
            inner = inner.func
        name = getattr(inner, "__name__", None) or type(inner).__name__
        return "_lambda_" if name == "<lambda>" else name


def jit(
    fun: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    keep_unused: bool = False,
    inline: bool = False,
    in_shardings: Any = None,
    out_shardings: Any = None,
    device: Any = None,
    backend: str | None = None,
    compiler_options: dict[str, Any] | None = None,
    control_flow: str | None = None,
    target: Any = None,
) -> Any:
    """The same function, compiled: traced when called with new shapes, dtypes or static values.

    fun              a function of pytrees of arrays, without side effects.
    static_argnums   positions whose values are part of the program; they must be hashable.
    static_argnames  the same by name. Each of the two is completed from the other by the signature.
    donate_argnums   positions whose buffers results may take over; they can't be used afterwards.
    donate_argnames  the same by name.
    keep_unused      pass on arguments that the program does not read.
    inline           within another traced function: write out the body instead of a call.
    in_shardings     a pytree prefix of the positional arguments: where each is put first.
    out_shardings    a pytree prefix of the result: where each array of it is put.
    device           what to run on, a Device; by default where the arguments are.
    backend          the same by the platform's name, "cpu" or "cuda".
    target           what to compile for, such as "cuda:sm_90a"; it runs on the first such device.
    compiler_options  names that begin with xla_ do nothing but warn; others raise ValueError.
    control_flow     "python": if, while, for and the like may depend on traced values; see autograph.

    The result has `.trace(*args)`, `.lower(*args)`, `.eval_shape(*args)` and `.clear_cache()`.
    Raises TypeError where fun is not callable; ValueError for positions or names that fun does not
    have, and on calls with unhashable static values.
    """
    if fun is None:
        return functools.partial(
            jit,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            donate_argnums=donate_argnums,
            donate_argnames=donate_argnames,
            keep_unused=keep_unused,
            inline=inline,
            in_shardings=in_shardings,
            out_shardings=out_shardings,
            device=device,
            backend=backend,
            compiler_options=compiler_options,
            control_flow=control_flow,
            target=target,
        )
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun!r}")
    for kind, found in (
        ("generator", inspect.isgeneratorfunction(fun)),
        ("coroutine", inspect.iscoroutinefunction(fun)),
    ):
        if found:
            raise TypeError(f"Expected a function, got a {kind} function: {fun}")
    if backend not in (None, "cpu", "cuda", "gpu"):
        raise RuntimeError(f"Unknown backend {backend!r}. Available backends are ['cpu', 'cuda'].")
    if backend is not None and device is not None:
        raise ValueError("can't specify both a device and a backend for jit")
    if isinstance(target, str):
        from lamina.backends.target import Target

        target = Target.parse(target)
    stages.check_compiler_options(compiler_options)
    if device is not None:
        if in_shardings is not None or out_shardings is not None:
            raise ValueError(
                "If backend or device is specified on jit, then in_shardings and out_shardings "
                "should not be specified."
            )
        if getattr(device, "platform", "cpu") == "cpu":
            from lamina.sharding import SingleDeviceSharding

            out_shardings = SingleDeviceSharding(device)
    if control_flow not in (None, "lax", "python"):
        raise ValueError(f'jit: control_flow is "python" or "lax" (None), got {control_flow!r}')
    if control_flow == "python":
        from lamina.python_control import autograph

        fun = autograph(fun)
    nums, names = _complete(fun, "static", static_argnums, static_argnames)
    donate_nums, donate_names = _complete(fun, "donate", donate_argnums, donate_argnames)
    if set(nums) & set(donate_nums) or set(names) & set(donate_names):
        raise ValueError(
            f"static arguments cannot be donated, but static_argnums={nums} and "
            f"donate_argnums={donate_nums} intersect: a static value has no buffer."
        )
    options = JitOptions(
        fun,
        nums,
        names,
        donate_nums,
        donate_names,
        keep_unused,
        inline,
        in_shardings,
        out_shardings,
        backend if device is None else device,
        target,
    )
    miss = functools.partial(_miss, options)
    # Names of static arguments that stand at a position come by either.
    wrapped: Any = CompiledFunction(miss, nums, names)
    functools.update_wrapper(wrapped, fun)
    wrapped.trace = functools.partial(_trace_stage, options)
    wrapped.lower = functools.partial(_lower_stage, options)
    wrapped.eval_shape = functools.partial(_eval_shape, options)
    wrapped.clear_cache = functools.partial(_clear_cache, options, wrapped.clear_cache)
    wrapped._jit_options = options
    _jitted.add(wrapped)
    return wrapped


def _complete(
    fun: Callable[..., Any], what: str, nums: Any, names: Any
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Positions and names of the same arguments, each completed from the other."""
    num_tuple = (nums,) if isinstance(nums, int) else tuple(nums or ())
    name_tuple = (names,) if isinstance(names, str) else tuple(names or ())
    if not num_tuple and not name_tuple:
        return (), ()
    for n in num_tuple:
        if not hasattr(n, "__index__"):
            raise TypeError(f"{what}_argnums must be integers, got {n!r}")
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        return tuple(n for n in num_tuple), name_tuple
    positional = [
        p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    variable = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    count = len(positional)
    resolved = []
    for n in num_tuple:
        if not variable and not -count <= n < count:
            raise ValueError(
                f"jitted function has {what}_argnums={num_tuple} but only accepts {count} positional "
                "arguments."
            )
        resolved.append(n + count if n < 0 else n)
    by_keyword = any(p.kind is p.VAR_KEYWORD for p in parameters)
    known = {p.name for p in parameters if p.kind is not p.POSITIONAL_ONLY}
    unknown = [n for n in name_tuple if n not in known]
    if unknown and not by_keyword:
        raise ValueError(
            f"jitted function has invalid argnames {{{', '.join(map(repr, unknown))}}} in "
            f"{what}_argnames. Function does not take these args."
        )
    all_names = dict.fromkeys(
        [*name_tuple, *(positional[n] for n in resolved if n < count and positional[n] in known)]
    )
    all_nums = dict.fromkeys(
        [*resolved, *(positional.index(n) for n in name_tuple if n in positional)]
    )
    return tuple(sorted(all_nums)), tuple(all_names)


# ---- tracing, once for each kind of arguments -----------------------------------------------------
@dataclasses.dataclass
class TracedCall:
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
    programs: dict[Any, Any] = dataclasses.field(default_factory=dict)
    """The programs.Program for each device and target, once compiled."""


_jitted: weakref.WeakSet[Any] = weakref.WeakSet()
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


def trace_call(
    options: JitOptions, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[TracedCall, list[Any]]:
    """The trace for these arguments (from memory if there is one), and their leaves."""
    static_args, static_kwargs, dynamic, dynamic_kwargs = _split_static(options, args, kwargs)
    leaves, in_tree = tree.flatten((dynamic, dynamic_kwargs))
    avals = []
    for i, x in enumerate(leaves):
        try:
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
                f"Error interpreting argument to {options.name} as an abstract array. The problematic "
                f"value is of type {type(x)} and was passed to the function at path {where}. {e}\n"
                "If it is a setting rather than data, mark it static (static_argnums or "
                "static_argnames)."
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
    )
    memory = _memory_of(options)
    found = memory.get(key)
    if found is not None:
        return found, leaves
    if memory and config.logs("retrace"):
        _explain_retrace(options, key, memory)
    with garbage.held_off():
        traced = _trace(options, args, kwargs, static_args, static_kwargs, in_tree, avals)
    if not any(isinstance(c, Tracer) for c in traced.closed.consts):
        memory[key] = traced
        if len(memory) > _MAX_TRACES:
            memory.pop(next(iter(memory)), None)  # the oldest
    return traced, leaves


def _memory_of(options: JitOptions) -> dict[Any, TracedCall]:
    try:
        return _traces.setdefault(options.fun, {})
    except TypeError:  # not weakly referable or not hashable: remember with this jit alone
        return _traces.setdefault(options, {})


def _clear_cache(options: JitOptions, clear_fast_path: Callable[[], None]) -> None:
    """Forgets the traces and the programs of the function."""
    _memory_of(options).clear()
    clear_fast_path()


def forget_all_programs() -> None:
    """Forgets the traces and programs of all functions, as `clear_cache` those of one."""
    for function in list(_jitted):
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
) -> TracedCall:
    out: list[Any] = []
    fun = options.fun

    def flat(*leaves: Any) -> list[Any]:
        dynamic, dynamic_kwargs = tree.unflatten(in_tree, leaves)
        given = iter(dynamic)
        full = [static_args[i] if i in static_args else next(given) for i in range(len(args))]
        result = fun(*full, **static_kwargs, **dynamic_kwargs)
        flat_out, out_tree = tree.flatten(result)
        check_outputs(flat_out, options.name)
        out[:] = [out_tree, tree.paths(result)]
        return flat_out

    info = debug_info(fun, "jit")
    names = arg_names(fun, args, kwargs) if not static_args and not static_kwargs else ()
    with monitoring.measured(monitoring.TRACE, fun_name=options.name):
        closed = trace_to_jaxpr(flat, avals, dataclasses.replace(info, arg_names=names))
    return TracedCall(
        closed,
        in_tree,
        out[0],
        _donated(options, args, kwargs),
        names,
        tuple(out[1]),
        options.name,
        options.keep_unused,
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


def _explain_retrace(options: JitOptions, key: Any, memory: dict[Any, TracedCall]) -> None:
    """LAMINA_LOG=retrace: which part of the key is new."""
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
    )
    best = min(memory, key=lambda old: sum(a != b for a, b in zip(old, key, strict=True)))
    changed = [p for p, a, b in zip(parts, best, key, strict=True) if a != b]
    lines = [f"lamina: {options.name} is traced again: new {', '.join(changed)}"]
    if best[1] != key[1] and len(best[1]) == len(key[1]):
        for i, (a, b) in enumerate(zip(best[1], key[1], strict=True)):
            if a != b:
                lines.append(f"lamina:   leaf {i}: {a!r} before, {b!r} now")
    elif best[2] != key[2]:
        lines.append(f"lamina:   static values before {best[2]}, now {key[2]}")
    print("\n".join(lines), file=sys.stderr)


# ---- calls --------------------------------------------------------------------------------------
def _miss(options: JitOptions, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Called for what the fast path does not know: tracing, new types, odd containers."""
    if config.disable_jit.value:
        return options.fun(*args, **kwargs), None
    if refs.in_use:
        from lamina.jit_refs import with_refs

        with FilteredTracebacks():
            call = with_refs(options, args, kwargs)
            if call is not None:
                return call(), None
    if not is_evaluating() or any(isinstance(x, Tracer) for x in tree.leaves((args, kwargs))):
        return _bind(options, args, kwargs), None
    with FilteredTracebacks():
        if options.in_shardings is not None:
            args = _placed_arguments(options, args)
        traced, leaves = trace_call(options, args, kwargs)
        entry = _program(traced, *_where(options, traced, leaves)).entry(traced.out_tree)
        constraints = _constraints(traced.closed.jaxpr)
        if value_checks.active():
            return value_checks.checked(options.name, entry, leaves, traced.closed), None
    if config.profiling.value:
        from lamina.profiler import timed_call

        entry = functools.partial(timed_call, f"jit({options.name})", entry)
    if (
        any(isinstance(x, Array) and x.placement is not None and x.device_number is None for x in leaves)
        or constraints
        or options.out_shardings is not None
        or not isinstance(entry, (FastPathEntry, KeyEntry))
    ):
        return _call_placed(options, traced, entry, leaves, constraints), None
    # Containers and leaves that the fast path can't read come through here on each call.
    return entry(leaves), entry


def _placed_arguments(options: JitOptions, args: tuple[Any, ...]) -> tuple[Any, ...]:
    from lamina.placement import put_arguments

    dynamic = tuple(x for i, x in enumerate(args) if i not in options.static_argnums)
    placed = iter(put_arguments(dynamic, options.in_shardings, options.name))
    return tuple(x if i in options.static_argnums else next(placed) for i, x in enumerate(args))


def _constraints(jaxpr: Jaxpr) -> dict[int, Any]:
    """The shardings of results that come straight from a with_sharding_constraint."""
    found = {
        e.outvars[0]: e.params["sharding"]
        for e in jaxpr.eqns
        if e.primitive.name == "sharding_constraint"
    }
    return {i: found[v] for i, v in enumerate(jaxpr.outvars) if found and v in found}  # type: ignore[index]


def _call_placed(
    options: JitOptions, traced: TracedCall, entry: Any, leaves: list[Any], constraints: Any
) -> Any:
    """A call with arguments or results that were placed on devices."""
    from lamina import placement

    names = traced.arg_names

    def name_of(i: int) -> str:
        return names[i] if i < len(names) else f"leaf {i}"

    mesh = placement.common_devices(leaves, name_of, options.name)  # before anything is donated
    placements = placement.by_shape(leaves)
    out = placement.place_results(mesh, placements, entry(leaves))
    if constraints:
        flat, treedef = tree.flatten(out)
        flat = [
            placement.put(x, constraints[i]) if i in constraints else x for i, x in enumerate(flat)
        ]
        out = tree.unflatten(treedef, flat)
    if options.out_shardings is not None:
        out = placement.put_results(out, options.out_shardings)
    return out


def _where(options: JitOptions, traced: TracedCall, leaves: list[Any]) -> tuple[Any, Any]:
    """The GPU that runs a call, None for the CPU, and what it is compiled for; arguments that belong
    on a GPU are put there."""
    from lamina import placement

    device, target = options.device, options.target
    if device is None and target is not None:
        device = target.kind
    gpu = placement.device_of(leaves) if device is None else placement.gpu_named(device)
    if gpu is not None:
        names = traced.arg_names
        placement.settle(
            leaves, lambda i: names[i] if i < len(names) else f"leaf {i}", options.name
        )
    return gpu, target if target is not None and target.kind == "cuda" else None


def _program(traced: TracedCall, device: Any, target: Any) -> programs.Program:
    program = traced.programs.get((device, target))
    if program is None:
        program = traced.programs[device, target] = programs.compile_program(
            traced.closed,
            traced.name,
            donated=traced.donated,
            keep_unused=traced.keep_unused,
            arg_names=traced.arg_names,
            result_paths=traced.result_paths,
            device=device,
            target=target,
        )
    return program


def _bind(options: JitOptions, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Within another transformation: an equation that calls the traced function."""
    traced, leaves = trace_call(options, args, kwargs)
    consts = traced.closed.consts
    if options.inline and is_staging():
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
    return tree.unflatten(traced.out_tree, outs)


_hoisted_memory: weakref.WeakKeyDictionary[Jaxpr, ClosedJaxpr] = weakref.WeakKeyDictionary()


def _hoisted(traced: TracedCall) -> ClosedJaxpr:
    found = _hoisted_memory.get(traced.closed.jaxpr)
    if found is None:
        found = close_jaxpr(convert_constvars(traced.closed.jaxpr))
        _hoisted_memory[traced.closed.jaxpr] = found
    return found


# ---- stages -------------------------------------------------------------------------------------
def _trace_stage(options: JitOptions, *args: Any, **kwargs: Any) -> stages.Traced:
    from lamina import placement

    traced, leaves = trace_call(options, args, kwargs)
    return stages.Traced(
        traced.closed,
        options.name,
        traced.in_tree,
        traced.out_tree,
        traced.donated,
        options.keep_unused,
        traced.arg_names,
        traced.result_paths,
        options.static_argnums,
        options.static_argnames,
        options.target,
        placement.device_of(leaves) if options.device is None else options.device,
    )


def _lower_stage(options: JitOptions, *args: Any, **kwargs: Any) -> stages.Lowered:
    return _trace_stage(options, *args, **kwargs).lower()


def _eval_shape(options: JitOptions, *args: Any, **kwargs: Any) -> Any:
    return _trace_stage(options, *args, **kwargs).out_info


def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The shapes and dtypes (ShapeDtypeStruct) of fun's results, without running it."""
    options = getattr(fun, "_jit_options", None) or jit(fun)._jit_options
    return _eval_shape(options, *args, **kwargs)


def make_jaxpr(
    fun: Callable[..., Any], static_argnums: int | Sequence[int] = (), *, return_shape: bool = False
) -> Callable[..., Any]:
    """A function that gives the jaxpr of `fun` for its arguments.

    return_shape  also give the shapes and dtypes of the results.
    """
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun!r}")

    def call(*args: Any, **kwargs: Any) -> Any:
        # A function of its own: nothing is remembered for the user's, and jits within stay calls.
        nums = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
        options = JitOptions(lambda *a, **k: fun(*a, **k), nums, (), (), (), True, False)
        traced, _ = trace_call(options, args, kwargs)
        if not return_shape:
            return traced.closed
        return traced.closed, shape_dtype.out_info(traced.closed, traced.out_tree)

    return functools.update_wrapper(call, fun)
