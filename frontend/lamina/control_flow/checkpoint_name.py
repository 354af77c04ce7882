"""checkpoint_name: an identity that gives a value a name, for policies of checkpoint to go by."""

from __future__ import annotations

from typing import Any

from lamina.core import tree
from lamina.core.primitive import Primitive


def checkpoint_name(x: Any, name: str) -> Any:
    """x, each leaf known to checkpoint's policies under a name.

    x     a tree of arrays.
    name  what lamina.checkpoint_policies.save_only_these_names and its like ask for.

    >>> def f(x):
    ...     y = lamina.ad_checkpoint.checkpoint_name(jnp.sin(x), "sine")
    ...     return jnp.cos(y)
    >>> policy = lamina.checkpoint_policies.save_only_these_names("sine")
    >>> print(lamina.grad(lamina.checkpoint(f, policy=policy))(1.0).round(3))
    -0.403
    """
    return tree.map(lambda leaf: name_p.bind(leaf, name=name), x)


def _jvp(primals: list[Any], tangents: list[Any], *, name: str) -> Any:
    return name_p.bind(*primals, name=name), tangents[0]


name_p: Primitive = Primitive(
    "name",
    abstract_eval=lambda x, *, name: x,
    lowering=lambda ctx, x, *, name: x,
    jvp=_jvp,
    transpose=lambda ct, x, *, name: [ct],
    batching=lambda args, dims, *, name: (name_p.bind(*args, name=name), dims[0]),
    impl=lambda x, *, name: x,
)
