"""Shardings: on which devices an array lies, and which part of it on each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from lamina.array import check_memory_kind
from lamina.core.library import library
from lamina.runtime import set_single_device_type
from lamina.runtime.processes import current as current_processes
from lamina.sharding.mesh import AbstractMesh, AxisType, Mesh, get_abstract_mesh, get_mesh
from lamina.sharding.spec import PartitionSpec

if TYPE_CHECKING:
    from lamina.core.manual_axes import UnreducedKind

Index = tuple[slice, ...]


def positions_here(devices: Sequence[Any]) -> Sequence[int]:
    """The positions among devices of those that belong to this process."""
    processes = current_processes()
    if processes.size == 1:
        return range(len(devices))
    return [i for i, d in enumerate(devices) if d.process_index == processes.rank]


class Sharding:
    """What all shardings can tell."""

    memory_kind: str | None = None

    @property
    def device_list(self) -> tuple[Any, ...]:
        """The devices, in the order of the shards."""
        raise NotImplementedError

    @property
    def device_set(self) -> set[Any]:
        """The devices."""
        return set(self.device_list)

    @property
    def here(self) -> Sequence[int]:
        """The positions in device_list of this process's devices."""
        return positions_here(self.device_list)

    @property
    def addressable_devices(self) -> set[Any]:
        """The devices of this process."""
        return {self.device_list[position] for position in self.here}

    @property
    def num_devices(self) -> int:
        """How many devices there are."""
        return len(self.device_list)

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all devices are of this process."""
        return len(self.here) == self.num_devices

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device holds all of the array."""
        raise NotImplementedError

    @property
    def is_readable_here(self) -> bool:
        """Whether this process can know all of an array: its devices hold all parts, or each holds all."""
        return self.is_fully_addressable or self.is_fully_replicated

    def indices(self, shape: Sequence[int]) -> list[Index]:
        """For each device of device_list the part that it holds."""
        raise NotImplementedError

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Any, Index]:
        """The part of an array of this shape that each device holds."""
        return dict(zip(self.device_list, self.indices(global_shape), strict=True))

    def addressable_devices_indices_map(self, global_shape: Sequence[int]) -> dict[Any, Index]:
        """The same for the devices of this process."""
        indices = self.indices(global_shape)
        return {self.device_list[position]: indices[position] for position in self.here}

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of a device's part."""
        raise NotImplementedError

    def parts(self, dim: int) -> int:
        """Into how many parts a dimension is split."""
        return 1

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Whether both place arrays of this rank alike."""
        if self == other:
            return True
        shape = (math.lcm(self.num_devices, other.num_devices),) * ndim
        if self.device_list != other.device_list or self.indices(shape) != other.indices(shape):
            return False
        return self.combiner == other.combiner and (
            not self.combiner or self.terms() == other.terms()
        )

    def check_compatible_aval(self, aval_shape: Sequence[int]) -> None:
        """Raises ValueError where arrays of this shape have too few dimensions to lie so."""

    def of_rows(self) -> Sharding:
        """How the parts of an array along its first dimension lie."""
        return self

    combiner: UnreducedKind | None = None
    """What the devices' terms of a part are combined by; None where there is one term, the part."""

    def terms(self) -> list[int]:
        """For each device of device_list which term of its part it holds."""
        return [0] * self.num_devices


class SingleDeviceSharding(Sharding):
    """All on one device. There is one object for each: the runtime knows it by its address."""

    _device: Any
    memory_kind: str | None
    _known: ClassVar[dict[Any, SingleDeviceSharding]] = {}

    def __new__(cls, device: Any, *, memory_kind: str | None = None) -> SingleDeviceSharding:
        key = cls, device, memory_kind
        found = cls._known.get(key)
        if found is None:
            check_memory_kind(memory_kind, device)
            found = object.__new__(cls)
            found._device, found.memory_kind = device, memory_kind
            found = cls._known.setdefault(key, found)
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return _single_device, (type(self), self._device, self.memory_kind)

    @property
    def device_list(self) -> tuple[Any, ...]:
        return (self._device,)

    is_fully_replicated = True  # type: ignore[assignment]

    def indices(self, shape: Sequence[int]) -> list[Index]:
        return [(slice(None),) * len(shape)]

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        return tuple(global_shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SingleDeviceSharding) and self._device == other._device

    def __hash__(self) -> int:
        return hash(self._device)

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self._device!r})"


def _single_device(
    kind: type[SingleDeviceSharding], device: Any, memory_kind: str | None
) -> SingleDeviceSharding:
    return kind(device, memory_kind=memory_kind)


set_single_device_type(SingleDeviceSharding)


class NamedSharding(Sharding):
    """Over a mesh: dimension i is split over the mesh axes that spec[i] names.

    Raises ValueError where the mesh has no axis of a name, or a name comes twice.
    """

    def __init__(
        self, mesh: Mesh | AbstractMesh, spec: Any, *, memory_kind: str | None = None
    ) -> None:
        if not isinstance(spec, PartitionSpec):
            if spec is None:
                raise TypeError(
                    f"Unexpected None as the spec of a NamedSharding: {library}.P() leaves all dimensions whole"
                )
            if not isinstance(spec, tuple):
                raise TypeError(
                    f"Unexpected type {type(spec)} for spec of NamedSharding. Expected "
                    f"PartitionSpec. Got {spec!r}"
                )
            spec = PartitionSpec(*spec)
        check_spec(mesh, spec)
        if memory_kind is not None and isinstance(mesh, Mesh) and mesh.size:
            check_memory_kind(memory_kind, mesh.device_list[0])
        self.mesh, self.spec, self.memory_kind = mesh, spec, memory_kind

    @property
    def device_list(self) -> tuple[Any, ...]:
        if not isinstance(self.mesh, Mesh):
            raise ValueError(f"{self!r} is over an AbstractMesh, which has no devices")
        return self.mesh.device_list

    @property
    def is_fully_replicated(self) -> bool:
        names = (*self.spec.names(), *self.spec.unreduced)
        return all(self.mesh.shape[name] == 1 for name in names)

    @property
    def combiner(self) -> UnreducedKind | None:  # type: ignore[override]
        several = any(self.mesh.shape[name] > 1 for name in self.spec.unreduced)
        return self.spec.unreduced_kind if several else None

    def check_compatible_aval(self, aval_shape: Sequence[int]) -> None:
        check_rank(self, aval_shape)

    def of_rows(self) -> NamedSharding:
        return self.update(spec=self.spec.with_entries(self.spec[1:]))

    def terms(self) -> list[int]:
        sizes = self.mesh.shape
        names = [name for name in self.mesh.axis_names if name in self.spec.unreduced]
        out = []
        for at in self._coordinates():
            term = 0
            for name in names:
                term = term * sizes[name] + at[name]
            out.append(term)
        return out

    def _coordinates(self) -> Iterator[dict[Any, int]]:
        """For each device where it is along each axis."""
        sizes, names = self.mesh.shape, self.mesh.axis_names
        for number in range(len(self.device_list)):
            at: dict[Any, int] = {}
            for name in reversed(names):
                number, at[name] = divmod(number, sizes[name])
            yield at

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        check_divides(self, global_shape)
        return tuple(n // self.parts(i) for i, n in enumerate(global_shape))

    def parts(self, dim: int) -> int:
        """Into how many parts a dimension is split."""
        return math.prod(self.mesh.shape[name] for name in self.spec.names_of(dim))

    def indices(self, shape: Sequence[int]) -> list[Index]:
        local = self.shard_shape(shape)
        sizes = self.mesh.shape
        out = []
        for at in self._coordinates():
            index = []
            for dim, n in enumerate(local):
                part = 0
                for name in self.spec.names_of(dim):
                    part = part * sizes[name] + at[name]
                split = self.parts(dim) > 1
                index.append(slice(part * n, (part + 1) * n) if split else slice(None))
            out.append(tuple(index))
        return out

    def update(self, *, mesh: Any = None, spec: Any = None) -> NamedSharding:
        """A copy with another mesh or spec."""
        return NamedSharding(mesh or self.mesh, self.spec if spec is None else spec)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, NamedSharding)
            and self.mesh == other.mesh
            and self.spec.trimmed() == other.spec.trimmed()
        )

    def __hash__(self) -> int:
        return hash((self.mesh, self.spec.trimmed()))

    def __repr__(self) -> str:
        return f"NamedSharding(mesh={self.mesh!r}, spec={self.spec!r})"


def over_current_mesh(spec: PartitionSpec) -> NamedSharding | None:
    """What a PartitionSpec alone means: over the current mesh, whose axes are of the kinds that they are here; over
    axes without devices where those that use_abstract_mesh or a shard_map named are others. None where no mesh is
    current."""
    axes, mesh = get_abstract_mesh(), get_mesh()
    if axes.empty:
        return None
    if mesh.shape_tuple != axes.shape_tuple:
        return NamedSharding(axes, spec)
    return NamedSharding(mesh if mesh.axis_types == axes.axis_types else mesh.update(axis_types=axes.axis_types), spec)


def check_spec(mesh: Mesh | AbstractMesh, spec: PartitionSpec) -> None:
    """Raises ValueError where a spec names what the mesh does not have, or something twice."""
    names = spec.names()
    if PartitionSpec.UNCONSTRAINED in tuple(spec) and mesh.axis_names and not mesh.auto_axes:
        raise ValueError(
            f"{spec} cannot contain `P.UNCONSTRAINED` when no mesh axis_types are `Auto`: there is no axis that it "
            f"leaves to the partitioner in {mesh}"
        )
    for name in names:
        if name not in mesh.axis_names:
            raise ValueError(
                f"Resource axis: {name} of {spec} is not found in mesh: {mesh.axis_names}."
            )
    if len(set(names)) < len(names):
        raise ValueError(
            "A single NamedSharding spec specification can map every mesh axis to at most one "
            f"positional dimension, but {spec} has duplicate entries for `{spec.twice()[0]}`"
        )
    if not spec.is_plain:
        _check_terms(mesh, spec)


def _check_terms(mesh: Mesh | AbstractMesh, spec: PartitionSpec) -> None:
    kinds = dict(zip(mesh.axis_names, mesh.axis_types, strict=True))
    for what, axes in (("Unreduced", spec.unreduced), ("Reduced", spec.reduced)):
        if None in axes:
            raise ValueError(
                f"{what.lower()} cannot contain None: its elements are axes of the mesh. Got {spec}"
            )
        if unknown := [name for name in axes if name not in kinds]:
            raise ValueError(
                f"{what} axes {unknown} of {spec} are not found in mesh: {mesh.axis_names}."
            )
        if hidden := [name for name in axes if kinds[name] is AxisType.Auto]:
            raise ValueError(
                f"{what} axes can only refer to mesh axes of type `Explicit` or `Manual`. Got {hidden} of {mesh}"
            )


def check_divides(sharding: NamedSharding, shape: Sequence[int], what: str = "One array") -> None:
    """Raises ValueError where an array of this shape can't be split so."""
    check_rank(sharding, shape, what)
    for dim, n in enumerate(shape):
        parts = sharding.parts(dim)
        if n % parts:
            raise ValueError(
                f"{what} was given the sharding of {sharding}, which implies that the global size "
                f"of its dimension {dim} should be divisible by {parts}, but it is equal to {n} "
                f"(full shape: {tuple(shape)}): the axes of a sharding should evenly divide the shape"
            )


def divides(sharding: Sharding, shape: Sequence[int]) -> bool:
    """Whether an array of this shape can be split so, in equal parts."""
    if not isinstance(sharding, NamedSharding):
        return True
    return all(n % sharding.parts(dim) == 0 for dim, n in enumerate(shape))


def check_rank(
    sharding: NamedSharding | PartitionSpec, shape: Sequence[int], what: str = "One array"
) -> None:
    """Raises ValueError where a sharding, or its spec, has more dimensions than arrays of this shape."""
    rank = len(sharding if isinstance(sharding, PartitionSpec) else sharding.spec)
    if rank > len(shape):
        scalar = "" if shape else " For scalars the PartitionSpec should be P()"
        raise ValueError(
            f"{what} was given a sharding that does not fit. Sharding {sharding} is only valid for values of "
            f"rank at least {rank}, but was applied to a value of rank {len(shape)}. Length of sharding.spec must be "
            f"at most the number of dimensions.{scalar}"
        )


class Uncommitted(SingleDeviceSharding):
    """Of arrays that nobody placed, made while another default device was set."""

    @property
    def of_uncommitted(self) -> SingleDeviceSharding:
        """The sharding that the user sees."""
        return SingleDeviceSharding(self._device)
