"""Sample applications of primitives: collectives, over the lanes of a vmap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from lamina import lax
from support.samples.sample import c64, f32, i32, row

# fmt: off

# ---- collectives over the lanes of a vmap -------------------------------------------------------
def _lanes(fun: Callable[..., Any]) -> Callable[..., Any]:
    """fun(lib, *lanes), over dimension 0 as the axis "i"."""

    def call(lib: Any, *xs: Any) -> Any:

        import lamina

        vmap = lamina.vmap if lib is lax else jax.vmap
        return vmap(lambda *lanes: fun(lib, *lanes), axis_name="i")(*xs)

    return call


_PAIRS = [(0, 2), (2, 1), (1, 0)]
for _spec in (f32(3, 4), i32(3, 4), c64(3, 2)):
    row("psum", _spec, call=_lanes(lambda lib, x: lib.psum(x, "i")))
row("psum_invariant", f32(3, 4), call=_lanes(
    lambda lib, x: lib.psum_invariant_p.bind(x, axes=("i",)) if lib is lax else lib.psum(x, "i")))
row("pvary", f32(3, 4), call=_lanes(
    lambda lib, x: lib.pvary_p.bind(x, axes=("i",)) if lib is lax else x))
row("all_gather_invariant", f32(3, 2), call=_lanes(
    lambda lib, x: lib.all_gather_invariant_p.bind(
        x, all_gather_dimension=0, axis_name="i", axis_index_groups=None, axis_size=3)
    if lib is lax else lib.all_gather(x, "i", tiled=True)))  # fmt: skip
row("unreduced_psum", f32(3, 4), call=_lanes(
    lambda lib, x: lib.unreduced_psum_p.bind(x, axes=("i",)) if lib is lax else lib.psum(x, "i")))
for _name in ("preduced", "reduced_vary_cast", "vary_unreduced_cast"):
    row(_name, f32(3, 4), call=_lanes(
        lambda lib, x, n=_name: getattr(lib, f"{n}_p").bind(x, axes=("i",)) if lib is lax else x))
row("all_gather_reduced", f32(3, 2), call=_lanes(
    lambda lib, x: lib.all_gather_reduced_p.bind(x, all_gather_dimension=0, axis_name="i", axis_size=3)
    if lib is lax else lib.all_gather(x, "i", tiled=True)))
row("unreduced_reduce_scatter", f32(3, 6), call=_lanes(
    lambda lib, x: lib.unreduced_reduce_scatter_p.bind(x, scatter_dimension=0, axis_name="i", axis_size=3)
    if lib is lax else lib.psum_scatter(x, "i", tiled=True)))
for _name in ("pmax", "pmin"):
    row(_name, f32(3, 4), call=_lanes(lambda lib, x, n=_name: getattr(lib, n)(x, "i")),
        jax_jvp=False)
row("axis_index", i32(3), call=_lanes(lambda lib, x: x + lib.axis_index("i")))
row("ppermute", f32(3, 4), call=_lanes(lambda lib, x: lib.ppermute(x, "i", _PAIRS)))
row("all_gather", f32(3, 2, 4), call=_lanes(lambda lib, x: lib.all_gather(x, "i", axis=1)))
row("all_gather", f32(3, 2), call=_lanes(lambda lib, x: lib.all_gather(x, "i", tiled=True)))
row("reduce_scatter", f32(3, 3), call=_lanes(lambda lib, x: lib.psum_scatter(x, "i")))
row("reduce_scatter", f32(3, 2, 6), note="tiled",
    call=_lanes(lambda lib, x: lib.psum_scatter(x, "i", scatter_dimension=1, tiled=True)))
row("all_to_all", f32(3, 3, 2), call=_lanes(lambda lib, x: lib.all_to_all(x, "i", 0, 1)))
row("all_to_all", f32(3, 2, 6), note="tiled",
    call=_lanes(lambda lib, x: lib.all_to_all(x, "i", 1, 0, tiled=True)))
