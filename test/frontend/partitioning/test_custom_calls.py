"""Shardings that custom_partitioning's functions answer with, found again as axes of a mesh."""

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from lamina.partitioning.shardy.custom_calls import sharding_of_tiles
from lamina.partitioning.shardy.meshes import Mesh, tiles_of
from lamina.partitioning.shardy.one_mesh import SeveralMeshes


@st.composite
def _tilings(draw):
    """A mesh, and a sharding of an array over axes and parts of axes of it."""
    sizes = {name: draw(st.sampled_from((2, 3, 4))) for name in "xyz"[: draw(st.integers(1, 3))]}
    mesh = Mesh(sizes, draw(st.permutations(range(prod(sizes.values())))))
    axes = []
    for name in draw(st.permutations(list(sizes)))[: draw(st.integers(1, 3))]:
        size = sizes[name]
        before = draw(st.sampled_from((1, 2))) if size == 4 else 1
        axes.append((name, before, size // before))
    rank = draw(st.integers(1, 3))
    dims = [draw(st.integers(0, rank - 1)) for _ in axes]
    return mesh, [[axis for axis, at in zip(axes, dims, strict=True) if at == d] for d in range(rank)]


@given(_tilings())
def test_axes_are_found_again(tiling):
    mesh, axes = tiling
    ids, dims = mesh.rows(axes)
    with ir.Context() as context, ir.Location.unknown():
        sdy.register_dialect(context)
        shown = ", ".join(f'"{name}"={size}' for name, size in mesh.sizes.items())
        order = f", device_ids={mesh.devices}" if mesh.devices != sorted(mesh.devices) else ""
        module = ir.Module.parse(f"sdy.mesh @m = <[{shown}]{order}>")
        found = sharding_of_tiles("m", mesh, len(axes), dims[:-1], ids)
        tiles, copies, devices, *_ = tiles_of(found, module, len(ids))
        assert (tiles, copies, devices) == (dims[:-1], dims[-1], ids)


def test_parts_that_no_axes_say():
    with ir.Context() as context, ir.Location.unknown():
        sdy.register_dialect(context)
        with pytest.raises(SeveralMeshes):
            sharding_of_tiles("m", Mesh({"x": 4}, []), 1, [4], [0, 2, 3, 1])
