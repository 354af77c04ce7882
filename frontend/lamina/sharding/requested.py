"""Whether a program is partitioned, and what is asked of it: here alone that is decided.

A program is partitioned over the devices of a mesh where an argument lies on one, a result is to, or a
with_sharding_constraint in it names one. It is not where nothing of these splits an array, nor where all that it
does is done in shard_maps: those say what each device does (`localize`). Nor without Shardy, which is said under
LAMINA_LOG=partition, or is an error where arguments lie in several processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from lamina import log_lines
from lamina.control_flow.jit_call import jit_p
from lamina.core.avals import ShapedArray
from lamina.core.jaxpr import ClosedJaxpr, Jaxpr, all_equations
from lamina.core.weak_cache import cache_on_jaxpr
from lamina.records import Record
from lamina.sharding.constraint import sharding_constraint_p
from lamina.sharding.explicit import on_devices, sharding_of
from lamina.sharding.grid import grid_of
from lamina.sharding.kinds import DeviceToCome
from lamina.sharding.manual import Manual
from lamina.sharding.mesh import AbstractMesh, AxisType, Mesh, get_abstract_mesh, get_mesh
from lamina.sharding.on_mesh import shard_map_p
from lamina.sharding.shardings import NamedSharding, Sharding, check_divides
from lamina.sharding.spec import PartitionSpec

Places = Sequence[Sharding | None]


class RequestedShardings(Record):
    """What is known of where the arrays of a program lie before it is partitioned.

    mesh     its devices, in their order, run the program.
    meshes   all that the program names, each once: the same devices in other grids.
    inputs, outputs  one for each argument and result; None where the partitioner chooses.
    """

    mesh: Mesh
    meshes: tuple[Mesh, ...]
    inputs: tuple[NamedSharding | None, ...]
    outputs: tuple[NamedSharding | None, ...]

    def key(self) -> str:
        """All of it as text, but for the devices: which these are makes no difference to a program."""
        grids = [mesh.shape_tuple for mesh in self.meshes]
        places = [
            None if s is None else (s.mesh.shape_tuple, s.spec)
            for s in (*self.inputs, *self.outputs)
        ]
        return repr((grids, len(self.inputs), places))

    def keeps(self, argument: int, result: int) -> bool:
        """Whether this argument, as it lies, is what a result is to be."""
        wanted = self.outputs[result]
        return wanted is None or wanted == self.inputs[argument]

    @property
    def is_to_come(self) -> bool:
        """Whether its devices are named when it is compiled."""
        return isinstance(self.mesh.device_list[0], DeviceToCome)

    def over(self, devices: Sequence[Any]) -> RequestedShardings:
        """The same on these devices."""

        def moved(place: NamedSharding | None) -> NamedSharding | None:
            return None if place is None else place.update(mesh=place.mesh.over(devices))

        meshes = tuple(mesh.over(devices) for mesh in self.meshes)
        return RequestedShardings(
            meshes[0], meshes, tuple(map(moved, self.inputs)), tuple(map(moved, self.outputs))
        )

    def of(self, inputs: Sequence[int], outputs: Sequence[int]) -> RequestedShardings:
        """The same for a program of some of the arguments and the results."""
        return RequestedShardings(
            self.mesh,
            self.meshes,
            tuple(self.inputs[i] for i in inputs),
            tuple(self.outputs[i] for i in outputs),
        )


def requested_shardings(
    closed: ClosedJaxpr,
    inputs: Places,
    outputs: Places,
    names: Callable[[int], str],
    function: str,
    *,
    ahead: bool = False,
) -> RequestedShardings | None:
    """What is asked of a program that is to be partitioned; None for one that is not.

    inputs, outputs  where arguments lie and results are to, as far as that was said.
    names            what the arguments are called, in messages.
    ahead            whether it is lowered ahead of its calls: then axes alone will do, whose devices are to come.

    Raises ValueError where arguments, results and the program are on different devices.
    """
    within = _meshes_within(closed)
    known = [*(getattr(place, "mesh", None) for place in inputs), *within]
    if ahead:
        known += _devices_to_come([*known, *(getattr(place, "mesh", None) for place in outputs)])
    inputs = [_on_devices(place, known) for place in inputs]
    is_whole = not within and all(map(_is_whole, inputs)) and not any(outputs)
    outputs = [
        _on_devices(_typed(aval) if place is None else place, known)
        for place, aval in zip(outputs, closed.out_avals, strict=True)
    ]
    places = [*inputs, *outputs]
    given = [s.mesh for s in places if isinstance(s, NamedSharding) and isinstance(s.mesh, Mesh)]
    if not given and (not within or _is_by_hand(closed)):
        return None
    every = dict.fromkeys((*given, *within))
    mesh = next(iter(every))
    is_whole = is_whole and not isinstance(mesh.device_list[0], DeviceToCome)  # what will be given is not known
    every |= dict.fromkeys(_of_axes_within(closed, mesh))
    _check_devices(mesh, list(every), inputs, closed, names, function)
    if mesh.size < 2 or _is_by_hand(closed) or (is_whole and all(map(_is_whole, outputs))):
        return None
    for place, aval in zip(outputs, closed.out_avals, strict=True):
        if isinstance(place, NamedSharding):
            check_divides(place, aval.shape, "One of pjit outputs")
    from lamina import partitioning

    why_not = partitioning.missing()
    if why_not is not None:
        _on_whole_arrays(inputs, names, function, why_not)
        return None
    distinct = {m.shape_tuple: m for m in reversed(every)}
    meshes = (mesh, *(m for m in distinct.values() if m.shape_tuple != mesh.shape_tuple))
    try:
        grid_of(meshes)
    except ValueError as error:
        _on_whole_arrays(inputs, names, function, str(error))
        return None
    return RequestedShardings(
        mesh,
        meshes,
        tuple(map(_named, inputs)),
        tuple(map(_named, outputs)),
    )


def _devices_to_come(meshes: Sequence[Mesh | AbstractMesh | None]) -> list[Mesh]:
    """A mesh over devices that are named later, where only axes are known."""
    found = [mesh for mesh in (*meshes, get_mesh(), get_abstract_mesh()) if mesh is not None and not mesh.empty]
    if not found or any(isinstance(mesh, Mesh) for mesh in found):
        return []
    return [found[0].over(list(map(DeviceToCome, range(found[0].size))))]


def _of_axes_within(closed: ClosedJaxpr, mesh: Mesh) -> Iterator[Mesh]:
    """The program's mesh cut into other axes that it names (use_abstract_mesh)."""
    for axes in _axes_within(closed):
        if axes.size == mesh.size and not set(axes.shape_tuple) <= set(mesh.shape_tuple):
            yield axes.over(mesh.device_list)


@cache_on_jaxpr
def _axes_within(closed: ClosedJaxpr) -> tuple[AbstractMesh, ...]:
    """The meshes without devices that constraints name."""
    shardings = (e.params["sharding"] for e in all_equations(closed.jaxpr) if e.primitive is sharding_constraint_p)
    found = (s.mesh for s in shardings if isinstance(s, NamedSharding) and isinstance(s.mesh, AbstractMesh))
    return tuple(dict.fromkeys(found))


def _is_whole(place: Sharding | None) -> bool:
    """Whether nothing is split: then each device would compute all, which one does for them."""
    if not isinstance(place, NamedSharding):
        return True
    return place.spec.is_plain and not place.spec.names()


def _typed(aval: ShapedArray) -> NamedSharding | None:
    """Where a result is to lie as its type says, which leaves open how along axes that are not explicit."""
    if aval.placed is None and AxisType.Explicit not in get_abstract_mesh().axis_types:
        return None
    found = sharding_of(aval)  # of what is not placed: whole along the current mesh's explicit axes
    if not found.mesh.auto_axes:
        return found
    return found.update(spec=found.spec.with_entries(n or PartitionSpec.UNCONSTRAINED for n in found.spec))


def _on_devices(place: Sharding | None, known: Sequence[Mesh | AbstractMesh | None]) -> Sharding | None:
    if isinstance(place, NamedSharding) and isinstance(place.mesh, AbstractMesh):
        return on_devices(place, known)
    return place


def _on_whole_arrays(
    inputs: Places, names: Callable[[int], str], function: str, why: str
) -> None:
    """Says that a program is not partitioned. Raises ValueError where no process has its arguments whole."""
    for i, place in enumerate(inputs):
        if place is not None and not place.is_readable_here:
            raise ValueError(
                f"{function} can't be partitioned, and no process has {names(i)} whole, under {place}: {why}"
            )
    log_lines.write("partition", 0.0, f"{function}: one program on whole arrays: {why}")


def _named(place: Sharding | None) -> NamedSharding | None:
    return place if isinstance(place, NamedSharding) else None


@cache_on_jaxpr
def _meshes_within(closed: ClosedJaxpr) -> tuple[Mesh, ...]:
    """Those that constraints and shard_maps name."""
    return tuple(dict.fromkeys(_meshes_of(closed.jaxpr)))


def _meshes_of(jaxpr: Jaxpr) -> Iterator[Mesh]:
    for eqn in all_equations(jaxpr):
        if eqn.primitive.mesh is not None:
            yield eqn.primitive.mesh(eqn.params)
        elif eqn.primitive is sharding_constraint_p:
            sharding = eqn.params["sharding"]
            if isinstance(sharding, NamedSharding) and isinstance(sharding.mesh, Mesh):
                yield sharding.mesh


@cache_on_jaxpr
def _is_by_hand(closed: ClosedJaxpr) -> bool:
    """Whether everything is done in shard_maps."""
    return bool(closed.jaxpr.eqns) and _only_shard_maps(closed.jaxpr)


def _only_shard_maps(jaxpr: Jaxpr) -> bool:
    return all(
        (e.primitive is shard_map_p and _is_over_all(e.params["on"]))
        or (e.primitive is jit_p and _only_shard_maps(e.params["jaxpr"].jaxpr))
        for e in jaxpr.eqns
    )


def _is_over_all(on: Manual) -> bool:
    """Whether a shard_map says of each device of its mesh what it does: over other axes values may be spread."""
    return all(on.mesh.shape[name] == 1 for name in on.mesh.axis_names if name not in on.names)


def _check_devices(
    mesh: Mesh,
    meshes: Sequence[Mesh],
    inputs: Places,
    closed: ClosedJaxpr,
    names: Callable[[int], str],
    function: str,
) -> None:
    ids = [d.id for d in mesh.device_list]
    for i, place in enumerate(inputs):
        if place is not None and place.device_list != mesh.device_list:
            raise ValueError(
                "Received incompatible devices for jitted computation. Got argument "
                f"{names(i)} of {function} with shape {closed.in_avals[i].str_long()} and device ids "
                f"{[d.id for d in place.device_list]}, and another argument, a result, a constraint or the context "
                f"mesh with device ids {ids}"
            )
    for other in meshes:
        if other.device_list != mesh.device_list:
            raise ValueError(
                "Received incompatible devices for jitted computation. Shardings and shard_maps of one "
                f"program are on the same devices in the same order; {function} has {mesh} on "
                f"{mesh.device_list} and {other} on {other.device_list}"
            )
