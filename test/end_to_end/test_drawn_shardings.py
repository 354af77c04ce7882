"""Random array programs under random meshes and shardings give what they give on one device."""

import math
import random
from typing import Any

import numpy as np
import pytest
from support.devices import auto_mesh
from support.devices import eight_devices as eight_devices
from support.strategies.array_programs import Program
from support.strategies.array_steps import program
from support.strategies.effort import examples

import lamina
import lamina.partitioning
from lamina import P
from lamina.sharding import Mesh, NamedSharding

pytestmark = [
    pytest.mark.usefixtures("eight_devices"),
    pytest.mark.skipif(lamina.partitioning.missing() is not None, reason="needs lamina[sharding]"),
]
GRIDS = [(2,), (3,), (4,), (8,), (2, 2), (2, 4), (4, 2), (2, 2, 2)]


def _sharding(draw: Any, mesh: Mesh, shape: tuple[int, ...]) -> NamedSharding:
    """Any that splits an array of this shape evenly."""
    left = list(mesh.axis_names)
    spec: list[Any] = []
    for n in shape:
        names: list[Any] = []
        while left and draw([True, True, False]):
            name = draw(left)
            if n % math.prod(mesh.shape[a] for a in (*names, name)):
                break
            left.remove(name)
            names.append(name)
        spec.append(tuple(names))
    return NamedSharding(mesh, P(*spec))


def _gradients(p: Program) -> Any:
    def total(*args: Any) -> Any:
        floats = [r for r in p.function(lamina)(*args) if r.size and r.dtype.kind == "f"]
        return sum((lamina.numpy.sum(lamina.numpy.cos(r) / r.size) for r in floats), args[0].sum())

    return lamina.grad(total, argnums=tuple(at for at, v in enumerate(p.arguments) if v.kind == "f"))


@pytest.mark.parametrize("seed", range(examples(8)))
def test_programs_give_what_one_device_gives(seed: int) -> None:
    draw = random.Random(f"shardings {seed}").choice
    p = program(draw, draw([4, 8, 14]))
    args = p.drawn(seed)
    f = draw([p.function(lamina), _gradients(p)])
    wanted = lamina.jit(f)(*args)
    sizes = draw(GRIDS)
    mesh = auto_mesh(sizes, tuple("xyz"[: len(sizes)]))
    placed = [
        lamina.device_put(x, _sharding(draw, mesh, x.shape)) if draw([True, True, False]) else x
        for x in args
    ]
    out_shardings = tuple(
        _sharding(draw, mesh, r.shape) if draw([True, False]) else None for r in wanted
    )
    got = lamina.jit(f, out_shardings=out_shardings)(*placed)
    shown = f"{p}\n{mesh}: {[getattr(x, 'sharding', None) for x in placed]} -> {out_shardings}"
    for g, w, sharding in zip(got, wanted, out_shardings, strict=True):
        assert sharding is None or g.sharding == sharding
        mine, theirs = np.asarray(g), np.asarray(w)
        if mine.dtype.kind in "iub":
            np.testing.assert_array_equal(mine, theirs, shown)
        else:
            size = np.max(np.abs(theirs), initial=0.01, where=np.isfinite(theirs))
            np.testing.assert_allclose(mine, theirs, 0, 2e-3 * size, err_msg=shown)
