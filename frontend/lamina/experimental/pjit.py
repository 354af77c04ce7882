"""`pjit`, the older name of `jit` with shardings, which runs on the mesh of a `with mesh:` around its calls."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from lamina.core import tree
from lamina.jit.function import compiled_function, jit
from lamina.jit.options import JitOptions
from lamina.sharding import PartitionSpec, Sharding
from lamina.sharding.constraint import with_sharding_constraint as with_sharding_constraint

__all__ = ["pjit", "with_sharding_constraint"]


class _Unspecified:
    """What in_shardings and out_shardings are by default."""

    def __repr__(self) -> str:
        return "UnspecifiedValue"


UNSPECIFIED: Any = _Unspecified()


def pjit(
    fun: Callable[..., Any] | None = None,
    in_shardings: Any = UNSPECIFIED,
    out_shardings: Any = UNSPECIFIED,
    **options: Any,
) -> Any:
    """jit whose calls within a `with mesh:` run on the mesh's devices: what nothing says of lies whole on each.

    fun            a function of pytrees of arrays; None: a decorator is given.
    in_shardings   as in jit. Within `with mesh:`, None says that an array is whole on each device.
    out_shardings  the same for the results.
    options        the other arguments of jit.

    Raises what jit raises, and on calls ValueError where a device is given, too, and a mesh is entered.

    >>> mesh = lamina.make_mesh((1,), ("x",), axis_types=(lamina.sharding.AxisType.Auto,))
    >>> with mesh:
    ...     lamina.experimental.pjit.pjit(lambda x: x + 1)(jnp.arange(2)).sharding.spec
    P()
    """
    if fun is None:
        return functools.partial(pjit, in_shardings=in_shardings, out_shardings=out_shardings, **options)
    given = {"in_shardings": in_shardings, "out_shardings": out_shardings}

    def options_for(of_place: Callable[[Any], Any]) -> JitOptions:
        places: Any = {name: None if place is UNSPECIFIED else of_place(place) for name, place in given.items()}
        jitted: Any = jit(fun, **options, **places)
        return jitted._jit_options  # type: ignore[no-any-return]

    plain = options_for(lambda place: place)
    return compiled_function(dataclasses.replace(plain, in_mesh=options_for(_whole)))


def _whole(shardings: Any) -> Any:
    """The same, in which None says that an array is whole on each device."""

    def is_place(x: Any) -> bool:
        return x is None or isinstance(x, (Sharding, PartitionSpec))

    return tree.map(lambda x: PartitionSpec() if x is None else x, shardings, is_leaf=is_place)
