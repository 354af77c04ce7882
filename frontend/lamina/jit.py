"""jit: traces a function once for each kind of arguments and runs what the compiler makes of it."""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from lamina import config, programs, shape_dtype, stages, value_checks
from lamina.array import Array
from lamina.compiler_options import applied, refuse_nested, settings_of
from lamina.control_flow.jit_call import jit_p
from lamina.control_flow.tracing import check_callable
from lamina.core import refs, tree
from lamina.core.jaxpr import ClosedJaxpr, Jaxpr, close_jaxpr, convert_constvars, eval_jaxpr
from lamina.core.trace import Tracer, is_evaluating
from lamina.interpreters.staging import is_staging
from lamina.jit_traces import JitOptions, TracedCall, clear_cache, jitted, trace_call
from lamina.key_array import KeyEntry
from lamina.runtime import CompiledFunction, FastPathEntry
from lamina.tracebacks import FilteredTracebacks


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
    compiler_options  settings for this program, such as {"matrix_products": "library"}; names that begin
                     with xla_ do nothing but warn; others raise ValueError.
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
    check_callable(fun)
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
    settings = settings_of(compiler_options)
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
        settings,
    )
    miss = functools.partial(_miss, options)
    # Names of static arguments that stand at a position come by either.
    wrapped: Any = CompiledFunction(miss, nums, names)
    functools.update_wrapper(wrapped, fun)
    wrapped.trace = functools.partial(_trace_stage, options)
    wrapped.lower = functools.partial(_lower_stage, options)
    wrapped.eval_shape = functools.partial(_eval_shape, options)
    wrapped.clear_cache = functools.partial(clear_cache, options, wrapped.clear_cache)
    wrapped._jit_options = options
    jitted.add(wrapped)
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


# ---- calls --------------------------------------------------------------------------------------
def _miss(options: JitOptions, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Called for what the fast path does not know: tracing, new types, odd containers."""
    if config.disable_jit.value:
        return options.fun(*args, **kwargs), None
    if refs.alive:
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
        with FilteredTracebacks(tracing=True):
            traced, leaves = trace_call(options, args, kwargs)
        entry = _program(options, traced, *_where(options, traced, leaves)).entry(traced.out_tree)
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


def _program(
    options: JitOptions, traced: TracedCall, device: Any, target: Any
) -> programs.Program:
    key = (device, target, options.settings)
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
            )
    return program


def _bind(options: JitOptions, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Within another transformation: an equation that calls the traced function."""
    refuse_nested(options.settings, options.name)
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
        options.settings,
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
    check_callable(fun)

    def call(*args: Any, **kwargs: Any) -> Any:
        # A function of its own: nothing is remembered for the user's, and jits within stay calls.
        nums = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
        options = JitOptions(lambda *a, **k: fun(*a, **k), nums, (), (), (), True, False)
        traced, _ = trace_call(options, args, kwargs)
        if not return_shape:
            return traced.closed
        return traced.closed, shape_dtype.out_info(traced.closed, traced.out_tree)

    return functools.update_wrapper(call, fun)
