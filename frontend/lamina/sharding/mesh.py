"""Meshes: devices in a grid whose axes have names."""

from __future__ import annotations

import dataclasses
import enum
import math
import operator
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ContextDecorator, contextmanager
from typing import Any

import numpy as np

from lamina.core import current_mesh
from lamina.core.library import library
from lamina.core.trace import is_evaluating
from lamina.devices import devices as all_devices
from lamina.runtime.processes import current as current_processes


class AxisType(enum.Enum):
    """How arrays are spread over a mesh axis: by the compiler, as types say, or by hand."""

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()


class _Axes:
    axis_names: tuple[Any, ...]
    axis_sizes: tuple[int, ...]
    axis_types: tuple[AxisType, ...]

    @property
    def shape(self) -> OrderedDict[Any, int]:
        """The size of each axis by name."""
        return OrderedDict(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def shape_tuple(self) -> tuple[tuple[Any, int], ...]:
        """The same as pairs."""
        return tuple(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def size(self) -> int:
        """The number of devices."""
        return math.prod(self.axis_sizes) if self.axis_names else 0

    @property
    def empty(self) -> bool:
        """Whether there is no axis."""
        return not self.axis_names

    @property
    def auto_axes(self) -> tuple[Any, ...]:
        """The names of the axes that the compiler spreads arrays over."""
        return self._of_type(AxisType.Auto)

    @property
    def explicit_axes(self) -> tuple[Any, ...]:
        """The names of the axes that were given as explicit."""
        return self._of_type(AxisType.Explicit)

    @property
    def manual_axes(self) -> tuple[Any, ...]:
        """The names of the axes that a shard_map maps over."""
        return self._of_type(AxisType.Manual)

    @property
    def are_all_axes_auto(self) -> bool:
        """Whether the compiler spreads arrays over each of them."""
        return all(kind is AxisType.Auto for kind in self.axis_types)

    @property
    def are_all_axes_explicit(self) -> bool:
        """Whether types say how arrays lie along each of them."""
        return all(kind is AxisType.Explicit for kind in self.axis_types)

    @property
    def are_all_axes_manual(self) -> bool:
        """Whether a shard_map maps over each of them."""
        return all(kind is AxisType.Manual for kind in self.axis_types)

    def over(self, devices: Sequence[Any]) -> Mesh:
        """A mesh of the same axes over these devices, as many as there are."""
        grid = np.empty(self.size, dtype=object)
        grid[:] = devices
        return Mesh(grid.reshape(self.axis_sizes), self.axis_names, self.axis_types)

    def _of_type(self, kind: AxisType) -> tuple[Any, ...]:
        types = zip(self.axis_names, self.axis_types, strict=True)
        return tuple(name for name, its in types if its is kind)

    def _shown(self) -> str:
        if not self.axis_names:
            return "()"
        axes = ", ".join(f"{name!r}: {size}" for name, size in self.shape_tuple)
        return f"{axes}, axis_types=({self._kinds()})"

    def _kinds(self) -> str:
        kinds = ", ".join(kind.name for kind in self.axis_types)
        return f"{kinds}," if len(self.axis_types) == 1 else kinds


def _names(axis_names: Any) -> tuple[Any, ...]:
    names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
    if None in names:
        raise ValueError(f"Mesh axis names cannot be None. Got: {names}")
    return names


def _types(axis_types: Any, names: Sequence[Any]) -> tuple[AxisType, ...]:
    if axis_types is None:
        return (AxisType.Auto,) * len(names)
    types = tuple(axis_types) if isinstance(axis_types, (tuple, list)) else (axis_types,)
    if wrong := [kind for kind in types if not isinstance(kind, AxisType)]:
        raise TypeError(
            f"axis_types passed to a mesh must be of type `{library}.sharding.AxisType`. Got {wrong[0]!r} "
            f"of type {type(wrong[0])}"
        )
    if len(types) != len(names):
        raise ValueError(
            f"Number of axis names should match the number of axis_types. Got axis_names={names} "
            f"and axis_types={types}"
        )
    return types


@dataclasses.dataclass(frozen=True, slots=True)
class AbstractDevice:
    """A kind of device, without one."""

    device_kind: str
    num_cores: int | None
    platform: str

    def __repr__(self) -> str:
        return (
            f"AbstractDevice(device_kind={self.device_kind}, num_cores={self.num_cores}, "
            f"platform={self.platform})"
        )


class AbstractMesh(_Axes):
    """A mesh's axes, without devices. `abstract_device` says of which kind those would be."""

    def __init__(
        self,
        axis_sizes: Sequence[int],
        axis_names: Sequence[Any],
        axis_types: Any = None,
        *,
        abstract_device: AbstractDevice | None = None,
    ) -> None:
        self.abstract_device = abstract_device
        self.axis_sizes, self.axis_names = tuple(axis_sizes), _names(axis_names)
        if len(self.axis_sizes) != len(self.axis_names):
            raise ValueError(
                f"An AbstractMesh has a name for each axis. Got axis_sizes={self.axis_sizes} and "
                f"axis_names={self.axis_names}"
            )
        self.axis_types = _types(axis_types, self.axis_names)

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """Itself, as what a Mesh has of this name."""
        return self

    def update(
        self,
        axis_sizes: Any = None,
        axis_names: Any = None,
        axis_types: Any = None,
        abstract_device: AbstractDevice | None = None,
    ) -> AbstractMesh:
        """A copy with other sizes, names or kinds of axes, or of devices."""
        return AbstractMesh(
            self.axis_sizes if axis_sizes is None else axis_sizes,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
            abstract_device=abstract_device or self.abstract_device,
        )

    def update_axis_types(self, name_to_type: Mapping[Any, AxisType]) -> AbstractMesh:
        """A copy in which these axes are of these kinds."""
        pairs = zip(self.axis_names, self.axis_types, strict=True)
        return self.update(axis_types=tuple(name_to_type.get(name, its) for name, its in pairs))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, AbstractMesh)
            and self.shape_tuple == other.shape_tuple
            and self.axis_types == other.axis_types
            and self.abstract_device == other.abstract_device
        )

    def __hash__(self) -> int:
        return hash((self.shape_tuple, self.axis_types, self.abstract_device))

    def __repr__(self) -> str:
        return f"AbstractMesh({self._shown()})"


class Mesh(_Axes, ContextDecorator):
    """An array of devices with a name for each axis. As a context, or a decorator, it is the current mesh.

    Raises ValueError where names and axes differ in number, or a name or a device comes twice.
    """

    def __init__(self, devices: Any, axis_names: Any, axis_types: Any = None) -> None:
        names = _names(axis_names)
        given = np.asarray(devices, dtype=object)
        if not names and not given.ndim and given[()] is None:
            given = np.empty(0, dtype=object)  # of np.empty((), object): no axes, and no device
        grid = np.empty_like(given)
        grid[...] = given
        if not names and not grid.size:
            grid = grid.reshape(-1)
            self._set(grid, (), (), (), ())
            return
        if len(names) != grid.ndim:
            raise ValueError(
                "Mesh requires the ndim of its first argument (`devices`) to equal the length of "
                f"its second argument (`axis_names`), but got devices.ndim == {grid.ndim} and "
                f"len(axis_names) == {len(names)}."
            )
        if len(set(names)) < len(names):
            raise ValueError(f"Mesh axis names should be unique, got {names}")
        for device in grid.flat:
            if not hasattr(device, "platform"):
                raise TypeError(f"A mesh is made of devices, as {library}.devices() gives them, got {device!r}")
        grid.flags.writeable = False
        devices_in_order = tuple(grid.flat)
        if len(set(devices_in_order)) < len(devices_in_order):
            raise ValueError(f"A mesh has each device once, got {devices_in_order}")
        self._set(grid, names, grid.shape, _types(axis_types, names), devices_in_order)

    def _set(self, grid: np.ndarray, names: Any, sizes: Any, types: Any, order: Any) -> None:
        self.devices, self.axis_names, self.axis_sizes = grid, names, sizes
        self.axis_types, self.device_list = types, order
        self._hash = hash((names, sizes, types, order))

    @property
    def device_ids(self) -> np.ndarray:
        """The ids of the devices, in their grid."""
        return np.vectorize(lambda d: d.id, otypes=[int])(self.devices)

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """The axes alone."""
        return AbstractMesh(self.axis_sizes, self.axis_names, self.axis_types)

    @property
    def local_mesh(self) -> Mesh:
        """The part of this process. Raises ValueError where that is no grid."""
        if not self.is_multi_process:
            return self
        mine = np.vectorize(lambda d: d.process_index == current_processes().rank, otypes=[bool])(self.devices)
        where = [np.unique(along) for along in np.nonzero(mine)]
        part = self.devices[np.ix_(*where)]
        if part.size != mine.sum():
            raise ValueError(f"the devices of process {current_processes().rank} are no grid in {self!r}")
        return Mesh(part, self.axis_names, self.axis_types)

    @property
    def local_devices(self) -> list[Any]:
        """The devices of this process."""
        rank = current_processes().rank
        return [d for d in self.device_list if d.process_index == rank]

    @property
    def is_multi_process(self) -> bool:
        """Whether its devices belong to several processes."""
        return len({d.process_index for d in self.device_list}) > 1

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Mesh)
            and self.shape_tuple == other.shape_tuple
            and self.axis_types == other.axis_types
            and self.device_list == other.device_list
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return (
            f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names}, "
            f"axis_types=({self._kinds()}))"
        )

    def __str__(self) -> str:
        return f"Mesh({self._shown()})"

    def update(self, devices: Any = None, axis_names: Any = None, axis_types: Any = None) -> Mesh:
        """A copy with other devices, names or kinds of axes."""
        return Mesh(
            self.devices if devices is None else devices,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
        )

    def __reduce__(self) -> Any:
        return Mesh, (np.array(self.devices), self.axis_names, self.axis_types)

    def __enter__(self) -> Mesh:
        before = current_mesh.saved()
        current_mesh.swap(set=before["set"], entered=(*before["entered"], self), abstract=None)
        return self

    def __exit__(self, *_: Any) -> None:
        before = current_mesh.saved()
        current_mesh.swap(**before | {"entered": before["entered"][:-1]})


def get_mesh() -> Mesh:
    """The current mesh, or one without axes.

    >>> lamina.get_mesh().empty
    True
    """
    found: Mesh = current_mesh.entered() or current_mesh.of_programs() or EMPTY
    return found


def get_abstract_mesh() -> AbstractMesh:
    """The axes of the current mesh. In a shard_map, of its mesh: those that it maps over are manual.

    >>> lamina.get_abstract_mesh().empty
    True
    """
    from lamina.sharding.manual import inside, manual_names

    here = inside()
    if here is not None:
        return here.mesh.abstract_mesh.update_axis_types(dict.fromkeys(manual_names(), AxisType.Manual))
    named: AbstractMesh | None = current_mesh.abstract()
    return get_mesh().abstract_mesh if named is None else named


class set_mesh:  # noqa: N801 (JAX's name: a function that is also a context manager)
    """Makes a mesh the current one of this thread, or, as a context, of a block. None: no mesh is.

    Its devices run what is computed from then on. Results lie on them, whole on each where nothing says otherwise.

    Raises ValueError for what is no Mesh, for one with manual axes, and within jit."""

    def __init__(self, mesh: Mesh | None) -> None:
        mesh = EMPTY if mesh is None else mesh
        if not isinstance(mesh, Mesh):
            raise ValueError(f"Expected mesh of type `{library}.sharding.Mesh`. Got {type(mesh)}")
        if mesh.manual_axes:
            raise ValueError(
                f"{mesh} contains manual axes, which a shard_map alone makes: they can't be of the current mesh"
            )
        if not is_evaluating():
            raise ValueError(
                "`set_mesh` can only be used outside of `jit`, since it says which devices run programs: within one, "
                "use_abstract_mesh says of which kinds axes are"
            )
        self._before = current_mesh.swap(set=None if mesh.empty else mesh, entered=(), abstract=None)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: Any) -> None:
        current_mesh.swap(**self._before)


@contextmanager
def use_abstract_mesh(mesh: AbstractMesh) -> Iterator[None]:
    """For a block, get_abstract_mesh() gives this one.

    mesh  an AbstractMesh, of the current mesh's size where there is one.

    Raises ValueError where it has another size.

    >>> with lamina.sharding.use_abstract_mesh(lamina.sharding.AbstractMesh((2,), ("x",))):
    ...     lamina.sharding.get_abstract_mesh().axis_names
    ('x',)
    """
    have = get_abstract_mesh()
    if not have.empty and not mesh.empty and have.size != mesh.size:
        raise ValueError(
            f"use_abstract_mesh cannot change the size of the mesh: {have} has {have.size} devices, and {mesh} "
            f"has {mesh.size}"
        )
    before = current_mesh.saved()
    current_mesh.swap(**before | {"abstract": mesh})
    try:
        yield
    finally:
        current_mesh.swap(**before)


use_mesh = set_mesh


def make_mesh(
    axis_sizes: Sequence[int],
    axis_names: Sequence[Any],
    axis_types: Any = None,
    *,
    devices: Sequence[Any] | None = None,
) -> Mesh:
    """A mesh of these sizes over the first devices.

    axis_sizes  how many devices along each axis.
    axis_names  a name for each axis.
    axis_types  an AxisType for each axis; by default Explicit: types say how arrays lie along it.
    devices     which ones; by default lamina.devices().

    Raises ValueError where sizes are no integers, or there are fewer devices than they take.

    >>> lamina.make_mesh((1,), ("batch",)).axis_names
    ('batch',)
    """
    try:
        sizes = tuple(operator.index(n) for n in axis_sizes)
    except TypeError:
        raise ValueError(
            f"`axis_sizes` passed to `make_mesh` should be a sequence of ints. Got {axis_sizes}"
        ) from None
    available = list(all_devices() if devices is None else devices)
    needed = math.prod(sizes)
    if needed > len(available):
        raise ValueError(
            f"Number of devices {len(available)} must be >= the product of mesh_shape "
            f"{sizes} ({library.variable('num_cpu_devices')}={needed} makes as many)"
        )
    grid = np.array(available[:needed], dtype=object).reshape(sizes)
    return Mesh(grid, axis_names, (AxisType.Explicit,) * len(sizes) if axis_types is None else axis_types)


EMPTY = Mesh(np.empty(0, dtype=object), ())
