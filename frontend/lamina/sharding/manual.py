"""Where the body of a shard_map runs: a mesh, of which some axes are mapped over by hand."""

from __future__ import annotations

import dataclasses
import functools
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from lamina import config
from lamina.control_flow.varying import align
from lamina.core import axes
from lamina.core.avals import ShapedArray
from lamina.core.jaxpr import ClosedJaxpr, DebugInfo, close_jaxpr, convert_constvars
from lamina.core.placed import WHOLE, Placed, sums
from lamina.core.trace import set_current_trace
from lamina.interpreters.staging import AtHand, trace_to_jaxpr
from lamina.sharding.mesh import AbstractMesh, AxisType
from lamina.sharding.shardings import NamedSharding
from lamina.sharding.spec import PartitionSpec


@dataclasses.dataclass(frozen=True)
class Manual:
    """The axes of a mesh that are named axes in a body; its values are blocks along them.

    mesh     an AbstractMesh until devices are known: those of a program's arguments.
    names    these axes, in the mesh's order. Along all others every device has, and does, the same.
    checked  whether types say along which of them a value varies (check_vma).
    """

    mesh: Any
    names: tuple[Any, ...]
    checked: bool

    @functools.cached_property
    def manual_mesh(self) -> AbstractMesh:
        """The mesh as types in the body speak of it."""
        return self.mesh.abstract_mesh.update_axis_types(dict.fromkeys(self.names, AxisType.Manual))

    @contextmanager
    def bound(self) -> Iterator[None]:
        """For a block, the axes are bound, and this is `inside()`."""
        sizes = [(name, self.mesh.shape[name]) for name in self.names]
        outer, around = _state.inside, _state.manual
        _state.inside, _state.manual = self, around.union(self.names)
        try:
            typed = (align, self.manual_mesh) if self.checked else (None, None)
            with axes.bind(sizes, *typed):
                yield
        finally:
            _state.inside, _state.manual = outer, around

    def trace(
        self,
        fun: Callable[..., Sequence[Any]],
        avals: Sequence[ShapedArray],
        what: str = "on_mesh",
        at_hand: AtHand | None = None,
    ) -> tuple[ClosedJaxpr, list[Any]]:
        """The jaxpr of a flat function of blocks, with what it closes over as leading inputs."""
        info = DebugInfo(what, getattr(fun, "__name__", what))
        with self.bound():
            closed = trace_to_jaxpr(fun, avals, info, at_hand)
        return close_jaxpr(convert_constvars(closed.jaxpr)), closed.consts

    def block_type(self, aval: ShapedArray, spec: PartitionSpec) -> ShapedArray:
        """The type of a device's block of a whole array."""
        shape = tuple(n // self.parts(spec, i) for i, n in enumerate(aval.shape))
        block = aval.update(shape=shape, vma=aval.vma | self.varying(spec), placed=None)
        left = self.manual_mesh.explicit_axes
        if not self.checked or (spec.is_plain and not left):
            return block
        over = sums(spec.unreduced, spec.reduced, spec.unreduced_kind)
        have = ((),) * block.ndim if aval.placed is None else aval.placed.dims
        dims = tuple(tuple(n for n in names if n in left) for names in have)
        return block.update(placed=Placed(self.manual_mesh, dims, over))

    def whole_type(self, aval: ShapedArray, spec: PartitionSpec) -> ShapedArray:
        """The type of the array that such blocks make up."""
        shape = tuple(n * self.parts(spec, i) for i, n in enumerate(aval.shape))
        if aval.placed is not None and any(aval.placed.dims):  # over the other axes, as the blocks are
            given = (spec.names_of(d) for d in range(aval.ndim))
            spec = spec.with_entries([a + b for a, b in zip(given, aval.placed.dims, strict=True)])
        sharding = NamedSharding(self.mesh, spec)
        return aval.update(shape=shape, vma=aval.vma - frozenset(self.names), sharding=sharding)

    def varying(self, spec: PartitionSpec) -> frozenset[Any]:
        """Along what the blocks of an array vary, as far as types tell."""
        if not self.checked:
            return frozenset()
        names = frozenset(spec.names())
        if config.remove_size_one_mesh_axis_from_type.value:
            return frozenset(name for name in names if self.mesh.shape[name] > 1)
        return names

    def parts(self, spec: PartitionSpec, dim: int) -> int:
        """In how many parts a dimension is cut."""
        return math.prod(self.mesh.shape[name] for name in spec.names_of(dim))

    def unnamed(self, spec: PartitionSpec) -> tuple[Any, ...]:
        """The axes along which the blocks are the same, where no batch is spread over them."""
        used = (*spec.names(), *spec.unreduced, *axes.spread())
        return tuple(name for name in self.names if name not in used)

    def each(self, aval: ShapedArray) -> PartitionSpec:
        """How values of which each device keeps its own are stacked along a new first dimension."""
        names = tuple(n for n in self.names if n in aval.vma) if self.checked else self.names
        names = tuple(n for n in names if n not in axes.spread())  # there the batch will be
        of = WHOLE if aval.placed is None else aval.placed.sums
        return PartitionSpec(
            *([names] if names else []),
            unreduced=of.unreduced, reduced=of.reduced, unreduced_kind=of.kind,
        )  # fmt: skip


class _State(threading.local):
    inside: Manual | None = None
    manual: frozenset[Any] = frozenset()


_state = _State()


@contextmanager
def outside() -> Iterator[None]:
    """A block that runs as outside of the bodies around it."""
    old = dict(_state.__dict__)
    _state.__dict__.clear()
    try:
        with axes.none_bound(), set_current_trace(None):
            yield
    finally:
        _state.__dict__.update(old)


def inside() -> Manual | None:
    """Where the body that is being traced runs; None outside of any."""
    return _state.inside


def manual_names() -> frozenset[Any]:
    """The axes that the shard_maps around the body that is being traced map over, its own among them."""
    return _state.manual


def check_not_inside(what: str, mesh: Any) -> None:
    """Raises ValueError in the body of a shard_map or pmap."""
    if _state.inside is not None:
        here = _state.inside
        raise ValueError(
            f"The context mesh {here.mesh}, of which {here.names} are manual here, should match the "
            f"mesh passed to {what}, {mesh}: inside a shard_map or pmap only a shard_map over other "
            "axes of the same mesh can stand (mesh=None, axis_names={...})"
        )


def shown(params: dict[str, Any]) -> dict[str, Any]:
    """The parameters as JAX prints them."""
    rest = {k: v for k, v in params.items() if k != "on"}
    on = params["on"]
    return {**rest, "mesh": on.mesh, "manual_axes": on.names, "check_vma": on.checked}
