"""What runs here: backends, versions, arrays that are alive, caches; and names for functions."""

from __future__ import annotations

import gc
import platform
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from lamina.array import ArrayImpl
from lamina.core.wrapping import function_name, wraps
from lamina.devices import default_backend

F = TypeVar("F", bound=Callable[..., Any])


def typeof(x: Any) -> Any:
    """The type of a value to a compiled program: shape, dtype and weakness.

    x  an array, a number or a traced value.

    >>> print(lamina.typeof(jnp.zeros((2, 3))))
    float32[2,3]
    """
    from lamina.core.refs import Ref
    from lamina.core.trace import get_aval

    return x.aval if isinstance(x, Ref) else get_aval(x)


def live_arrays(platform: str | None = None) -> list[ArrayImpl]:
    """The arrays that are not deleted, of all programs and threads.

    platform  those on this one only: "cpu" or "cuda".

    >>> x = jnp.ones(3)
    >>> any(y is x for y in lamina.live_arrays())
    True
    """
    found = [x for x in gc.get_objects() if type(x) is ArrayImpl and not x.is_deleted()]
    if platform is None:
        return found
    name = "cuda" if platform == "gpu" else platform
    return [x for x in found if any(d.platform == name for d in x.devices())]


def clear_caches() -> None:
    """Forgets every traced and compiled program of this process. The disk store stays.

    >>> lamina.clear_caches()
    """
    from lamina.jit.traces import forget_all_programs

    forget_all_programs()


def print_environment_info(return_string: bool = False) -> str | None:
    """Versions of lamina and what it stands on, for reports of bugs.

    return_string  give them as text instead of printing it.

    >>> "lamina" in lamina.print_environment_info(return_string=True)
    True
    """
    import ml_dtypes
    import numpy
    import optree

    import lamina

    lines = [
        f"lamina:    {lamina.__version__}",
        f"numpy:     {numpy.__version__}",
        f"ml_dtypes: {ml_dtypes.__version__}",
        f"optree:    {optree.__version__}",
        f"python:    {sys.version}",
        f"platform:  {platform.platform()}, {platform.machine()}",
        f"backend:   {default_backend()}",
    ]
    text = "\n".join(lines)
    if return_string:
        return text
    print(text)
    return None


def named_call(fun: F, *, name: str | None = None) -> F:
    """fun whose operations stand under a name in compiled programs.

    fun   any function.
    name  by default the function's own.

    >>> float(lamina.named_call(lambda x: x + 1, name="increment")(jnp.array(1.0)))
    2.0
    """
    from lamina import named_scope

    @wraps(fun)
    def named(*args: Any, **kwargs: Any) -> Any:
        with named_scope(name or function_name(fun)):
            return fun(*args, **kwargs)

    return named  # type: ignore[return-value]
