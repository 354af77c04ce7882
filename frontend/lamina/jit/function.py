"""jit: traces a function once for each kind of arguments and runs what the compiler makes of it."""

from __future__ import annotations

import copyreg
import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, Protocol, TypeVar, overload

from lamina import shape_dtype, stages
from lamina.control_flow.tracing import check_callable
from lamina.core import axes, refs
from lamina.core.array_class import Array
from lamina.core.tracebacks import api_boundary
from lamina.core.wrapping import function_name, update_wrapper
from lamina.jit.calls import call_new, on_mesh_of, requested_of, wanted_of_arguments
from lamina.jit.compiler_levels import Inline
from lamina.jit.options import JitOptions, options_of
from lamina.jit.traces import clear_cache, jitted, trace_call
from lamina.runtime import CompiledFunction

P = ParamSpec("P")
R = TypeVar("R")


class _Jit(Protocol):
    """What `jit` gives without a function: a decorator."""

    def __call__(self, fun: Callable[P, R], /) -> stages.Wrapped[P, R]: ...


@overload
def jit(
    fun: Callable[P, R],
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
) -> stages.Wrapped[P, R]: ...
@overload
def jit(
    fun: None = None,
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
) -> _Jit: ...
@api_boundary
def jit(
    fun: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    keep_unused: bool = False,
    inline: bool | Inline = False,
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
    inline           within another traced function: write out the body instead of a call (True, or
                     Inline.JAX_EARLY; the other kinds of Inline mean False).
    in_shardings     a pytree prefix of the positional arguments: where each is put first.
    out_shardings    a pytree prefix of the result: where each array of it is put.
    device           what to run on, a Device; by default where the arguments are.
    backend          the same by the platform's name, "cpu" or "cuda".
    target           what to compile for: "cpu" (this processor), "cpu:x86-64-v3" (every one of that
                     level), "cuda:sm_90a"; it runs on the first such device.
    compiler_options  settings for this program, such as {"matrix_products": "library"}; names that begin
                     with xla_ do nothing but warn; others raise ValueError.
    control_flow     "python": if, while, for and the like may depend on traced values; see autograph.

    The result has `.trace(*args)`, `.lower(*args)`, `.eval_shape(*args)` and `.clear_cache()`.
    Raises TypeError where fun is not callable; ValueError for positions or names that fun does not
    have, and on calls with unhashable static values.

    >>> f = lamina.jit(lambda x, n: x * n, static_argnums=1)
    >>> f(jnp.arange(3), 2).tolist()
    [0, 2, 4]
    """
    given: dict[str, Any] = {
        "static_argnums": static_argnums,
        "static_argnames": static_argnames,
        "donate_argnums": donate_argnums,
        "donate_argnames": donate_argnames,
        "keep_unused": keep_unused,
        "inline": inline,
        "in_shardings": in_shardings,
        "out_shardings": out_shardings,
        "device": device,
        "backend": backend,
        "compiler_options": compiler_options,
        "control_flow": control_flow,
        "target": target,
    }
    if fun is None:
        return functools.partial(jit, **given)
    return compiled_function(options_of(fun, **given))


def compiled_function(options: JitOptions) -> CompiledFunction:
    """The jitted function of these options."""
    # Names of static arguments that stand at a position come by either.
    call = functools.partial(call_new, options)
    wrapped: Any = CompiledFunction(call, options.static_argnums, options.static_argnames)
    update_wrapper(wrapped, options.fun)
    wrapped.trace = functools.partial(_trace_stage, options)
    wrapped.lower = functools.partial(_lower_stage, options)
    wrapped.eval_shape = functools.partial(_eval_shape, options)
    wrapped.clear_cache = functools.partial(clear_cache, options, wrapped.clear_cache)
    wrapped._jit_options = options
    jitted.add(wrapped)
    return wrapped


def _reduced(wrapped: Any) -> Any:
    """How a jitted function is pickled: by its name, as functions are, where it is found there; else
    as what it is made of."""
    options: JitOptions | None = getattr(wrapped, "_jit_options", None)
    if options is None:
        raise TypeError(f"{wrapped} is a program, which is pickled by no name")
    found: Any = sys.modules.get(getattr(wrapped, "__module__", None) or "")
    name = getattr(wrapped, "__qualname__", "")
    for part in name.split("."):
        found = getattr(found, part, None)
    return name if found is wrapped else (compiled_function, (options,))


def _itself(wrapped: Any, memo: Any = None) -> Any:
    return wrapped


copyreg.pickle(CompiledFunction, _reduced)
for _method in ("__copy__", "__deepcopy__"):  # as functions are
    setattr(CompiledFunction, _method, _itself)


@api_boundary
def _trace_stage(options: JitOptions, *args: Any, **kwargs: Any) -> stages.Traced:
    options, block = options.here()
    with block:
        return _traced_stage(options, args, kwargs)


def _traced_stage(options: JitOptions, args: tuple[Any, ...], kwargs: dict[str, Any]) -> stages.Traced:
    from lamina import placement

    if refs.alive:
        from lamina.jit.refs import staged

        of_values = staged(options, args, kwargs)
        if of_values is not None:
            pure, values, named, call = of_values
            stage = _traced_stage(pure._jit_options, values, named)
            stage.with_refs = call
            return stage
    traced, leaves = trace_call(options, args, kwargs)
    wanted = wanted_of_arguments(options, args)
    traced = on_mesh_of(traced, leaves, wanted, ahead=True)
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
        requested_of(options, traced, leaves, wanted, ahead=True),
    )


@api_boundary
def _lower_stage(options: JitOptions, *args: Any, **kwargs: Any) -> stages.Lowered:
    return _trace_stage(options, *args, **kwargs).lower()


def _eval_shape(options: JitOptions, *args: Any, **kwargs: Any) -> Any:
    return _trace_stage(options, *args, **kwargs).out_info


@overload
def eval_shape(
    fun: Callable[..., Array], *args: Any, **kwargs: Any
) -> shape_dtype.ShapeDtypeStruct: ...
@overload
def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any: ...
@api_boundary
def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The shapes and dtypes (ShapeDtypeStruct) of fun's results, without running it.

    fun           a function of pytrees of arrays.
    args, kwargs  its arguments: arrays, or whatever has a shape and a dtype.

    >>> lamina.eval_shape(jnp.outer, jnp.ones(2), jnp.ones(3)).shape
    (2, 3)
    """
    jitted_fun: Any = fun if isinstance(getattr(fun, "_jit_options", None), JitOptions) else jit(fun)
    options: JitOptions = jitted_fun._jit_options
    typed, named = _typed(options, args, kwargs)
    return _eval_shape(options, *typed, **named)


def _typed(
    options: JitOptions, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments with a ShapeDtypeStruct for each value that has a shape and a dtype without being an array."""
    static = {i + len(args) if i < 0 else i for i in options.static_argnums}
    typed = tuple(x if i in static else shape_dtype.as_types(x) for i, x in enumerate(args))
    return typed, {
        k: x if k in options.static_argnames else shape_dtype.as_types(x) for k, x in kwargs.items()
    }


@api_boundary
def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    return_shape: bool = False,
) -> Callable[..., Any]:
    """A function that gives the jaxpr of `fun` for its arguments.

    fun             a function of pytrees of arrays.
    static_argnums  positions of arguments that are values, not arrays.
    axis_env        named axes that fun's collectives may name: pairs of a name and a size.
    return_shape    also give the shapes and dtypes of the results.

    >>> print(lamina.make_jaxpr(lambda x: x + 1)(jnp.zeros(2)))
    { lambda ; a:f32[2]. let b:f32[2] = add a 1.0 in (b,) }
    """
    check_callable(fun)

    @api_boundary
    def call(*args: Any, **kwargs: Any) -> Any:
        # A function of its own: nothing is remembered for the user's, and jits within stay calls.
        nums = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
        options = JitOptions(lambda *a, **k: fun(*a, **k), nums, (), (), (), True, False)
        with axes.bind(axis_env or ()):
            traced, _ = trace_call(options, *_typed(options, args, kwargs))
        if not return_shape:
            return traced.closed
        return traced.closed, shape_dtype.out_info(traced.closed, traced.out_tree)

    made = update_wrapper(call, fun)
    made.__name__ = f"make_jaxpr({function_name(fun)})"
    return made
