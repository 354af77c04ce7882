"""What the user told jit, checked: which arguments are static or donated, and where it is to run."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from lamina.control_flow.tracing import check_callable
from lamina.core import current_mesh
from lamina.core.trace import is_evaluating
from lamina.core.wrapping import function_name
from lamina.jit.compiler_levels import Inline
from lamina.jit.compiler_options import settings_of
from lamina.records import Record


class JitOptions(Record, eq=False):
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
    settings: tuple[tuple[str, Any], ...] = ()  # compiler_options that are ours
    in_mesh: JitOptions | None = None  # in place of these where `with mesh:` says which devices run it (pjit)

    def here(self) -> tuple[JitOptions, AbstractContextManager[None]]:
        """What holds for a call now, and the block that it runs in. Raises ValueError where a device is given and
        `with mesh:` names others."""
        mesh = current_mesh.entered() if self.in_mesh is not None and is_evaluating() else None
        if mesh is None or mesh.empty:
            return self, nullcontext()
        if self.device is not None:
            raise ValueError(
                "Mesh context manager should not be used with jit when backend or device is also specified as an "
                f"argument to jit. Got {self.device} within {mesh}"
            )
        assert self.in_mesh is not None
        return self.in_mesh, current_mesh.running_on(mesh)

    @property
    def name(self) -> str:
        name = function_name(self.fun)
        return "_lambda_" if name == "<lambda>" else name


def options_of(
    fun: Callable[..., Any],
    *,
    static_argnums: int | Sequence[int] | None,
    static_argnames: str | Sequence[str] | None,
    donate_argnums: int | Sequence[int] | None,
    donate_argnames: str | Sequence[str] | None,
    keep_unused: bool,
    inline: bool | Inline,
    in_shardings: Any,
    out_shardings: Any,
    device: Any,
    backend: str | None,
    compiler_options: dict[str, Any] | None,
    control_flow: str | None,
    target: Any,
) -> JitOptions:
    """The options for arguments of jit, by their names there. Raises what jit's docstring says."""
    _check_function(fun)
    if in_shardings is not None or out_shardings is not None:
        from lamina.sharding.formats import shardings_of

        in_shardings = shardings_of("in_shardings", in_shardings)
        out_shardings = shardings_of("out_shardings", out_shardings)
    _check_device(device, backend, in_shardings, out_shardings)
    settings = settings_of(compiler_options)
    if device is not None and getattr(device, "platform", "cpu") == "cpu":
        from lamina.sharding import SingleDeviceSharding

        out_shardings = SingleDeviceSharding(device)
    fun = _with_control_flow(fun, control_flow)
    nums, names = _complete(fun, "static", static_argnums, static_argnames)
    donate_nums, donate_names = _complete(fun, "donate", donate_argnums, donate_argnames)
    if set(nums) & set(donate_nums) or set(names) & set(donate_names):
        raise ValueError(
            f"static arguments cannot be donated, but static_argnums={nums} and "
            f"donate_argnums={donate_nums} intersect: a static value has no buffer."
        )
    return JitOptions(
        fun,
        nums,
        names,
        donate_nums,
        donate_names,
        keep_unused,
        _inlined(inline),
        in_shardings,
        out_shardings,
        backend if device is None else device,
        _target(target),
        settings,
    )


def _inlined(inline: Any) -> bool:
    if not isinstance(inline, (bool, Inline)):
        raise ValueError(f"Invalid inline option: {inline!r}")
    return inline is True or inline is Inline.JAX_EARLY


def _check_function(fun: Any) -> None:
    check_callable(fun)
    for kind, found in (
        ("generator", inspect.isgeneratorfunction(fun)),
        ("coroutine", inspect.iscoroutinefunction(fun)),
    ):
        if found:
            raise TypeError(f"Expected a function, got a {kind} function: {fun}")


def _check_device(device: Any, backend: str | None, in_shardings: Any, out_shardings: Any) -> None:
    if backend not in (None, "cpu", "cuda", "gpu"):
        raise RuntimeError(f"Unknown backend {backend!r}. Available backends are ['cpu', 'cuda'].")
    for name, shardings in (("in_shardings", in_shardings), ("out_shardings", out_shardings)):
        if shardings is None:
            continue
        if device is not None or backend is not None:
            raise ValueError(
                f"If backend or device is specified on jit, then {name} should not be specified."
            )
        from lamina.placement import check_places

        check_places(name, shardings)
    if device is not None and backend is not None:
        raise ValueError("can't specify both a device and a backend for jit")


def _target(target: Any) -> Any:
    """A Target, which may be given by its text."""
    if target is None:
        return None
    from lamina.backends.target import Target

    return target if isinstance(target, Target) else Target.parse(target)


def _with_control_flow(fun: Callable[..., Any], control_flow: str | None) -> Callable[..., Any]:
    if control_flow not in (None, "lax", "python"):
        raise ValueError(f'jit: control_flow is "python" or "lax" (None), got {control_flow!r}')
    if control_flow != "python":
        return fun
    from lamina.python_control import autograph

    return autograph(fun)


def _complete(
    fun: Callable[..., Any], what: str, nums: Any, names: Any
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Positions and names of the same arguments, each completed from the other."""
    num_tuple, name_tuple = (
        () if one is None else tuple(one) if isinstance(one, Iterable) and type(one) is not str else (one,)
        for one in (nums, names)
    )
    if not num_tuple and not name_tuple:
        return (), ()
    for n in num_tuple:
        if not hasattr(n, "__index__"):
            raise TypeError(f"{what}_argnums must be integers, got {n!r}")
    for name in name_tuple:
        if not isinstance(name, str):
            raise TypeError(f"{what}_argnames must be names of arguments, got {name!r}")
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError) as e:
        if what == "donate" and name_tuple:
            raise ValueError(
                f"Getting the signature of function {fun} failed. Pass donate_argnums instead of "
                "donate_argnames."
            ) from e
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
        if n >= -count:
            resolved.append(n + count if n < 0 else n)
    by_keyword = any(p.kind is p.VAR_KEYWORD for p in parameters)
    by_position = {p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL)}
    known = {p.name for p in parameters if p.kind is not p.VAR_KEYWORD} - by_position
    unknown = [n for n in name_tuple if n not in known and (n in by_position or not by_keyword)]
    if unknown:
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
