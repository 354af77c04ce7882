"""Programs with a mistake that type checkers refuse: each has the code of its error beside it."""

from __future__ import annotations

import lamina
import lamina.numpy as jnp
from lamina import Array, lax

x = jnp.ones(3)


def scaled(x: Array, factor: int) -> Array:
    return x * factor


@lamina.jit
def squared(x: Array) -> Array:
    return x * x


jnp.sin("x")  # error: arg-type
jnp.sin(x, x)  # error: call-arg
print(jnp.reshape(x, (3,)).shpae)  # error: attr-defined
x.summ()  # error: attr-defined
x.sum(axs=0)  # error: call-arg
x.at[0].sett(1)  # error: attr-defined
x + "y"  # error: operator
x.shape = (1, 3)  # error: misc
x[0] = 1.0  # error: index
lamina.jit(scaled)(x)  # error: call-arg
lamina.jit(scaled)(x, factor="2")  # error: arg-type
lamina.jit(scaled, static_args=1)  # error: call-overload
squared(x, x)  # error: call-arg
print(squared(x).sahpe)  # error: attr-defined
squared.lowered(x)  # error: attr-defined
length: str = squared(x)  # error: assignment
lamina.vmap(scaled)(x)  # error: call-arg
lamina.grad(scaled)(x, 1, 2)  # error: call-arg
lamina.grad(3)  # error: call-overload
lamina.checkpoint(scaled)(x, 1, 2)  # error: call-arg
lax.while_loop(lambda s: s[0] < 3, lambda s: s[0], (x, x))  # error: arg-type
lax.fori_loop(0, 3, lambda i: i, x)  # error: misc
lamina.devcies()  # error: attr-defined
lax.cond(True, squared, squared, {"w": x})  # error: arg-type
