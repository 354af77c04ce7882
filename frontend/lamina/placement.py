"""Placing arrays on devices: cutting them into shards, putting shards together, and what placement
the results of computations on placed arrays have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lamina import guards, runtime
from lamina.array import ArrayImpl, Device, gpu_here
from lamina.core import current_mesh, dtypes, tree
from lamina.core.library import library
from lamina.core.trace import Tracer, get_aval
from lamina.key_array import KeyArray
from lamina.memory import Space as MemorySpace
from lamina.shape_dtype import ShapeDtypeStruct
from lamina.sharding.formats import Format, Layout
from lamina.sharding.mesh import AbstractMesh
from lamina.sharding.shardings import (
    Index,
    NamedSharding,
    Sharding,
    SingleDeviceSharding,
    Uncommitted,
    check_divides,
    check_rank,
    over_current_mesh,
)
from lamina.sharding.spec import PartitionSpec


def is_placed(x: Any) -> bool:
    """Whether x is an array that somebody placed."""
    return isinstance(x, (ArrayImpl, KeyArray)) and x.placement is not None


def uncommitted(device: Any) -> Sharding | None:
    """The sharding of new arrays where this is the default device; None for the first device."""
    if isinstance(device, str):
        from lamina.devices import devices

        device = devices(device)[0]
    if device is None:
        return None
    if not isinstance(device, Device):
        raise TypeError(f"default_device is a Device or a platform's name, got {device!r}")
    return Uncommitted(device)


# ---- which device runs a program -----------------------------------------------------------------
def device_of(leaves: Sequence[Any]) -> Device | None:
    """The GPU that a program on these arguments runs on, of a mesh the first; None for the CPU.

    It is where somebody put an argument, else where one lies, else the default device.
    """
    from lamina.devices import default_device

    found: Device | None = None
    for x in leaves:
        array = x._held if type(x) is KeyArray else x
        if not isinstance(array, ArrayImpl):
            continue
        placement = array.placement
        if placement is not None:
            device = placement.device_list[0]
            if array.committed:
                return device if device.platform == "cuda" else None
            if device.platform == "cuda":
                found = found or device
        if array.device_number is not None:
            found = found or gpu_here(array.device_number)
    return found or default_device()


def gpu_named(device: Device | str | None) -> Device | None:
    """The GPU that a device or a platform's name stands for; None for the CPU."""
    if isinstance(device, str) and device != "cpu":
        from lamina.devices import devices

        device = devices(device)[0]
    return None if isinstance(device, str) or device is None or device.platform == "cpu" else device


def is_pythons(x: Any) -> bool:
    """Whether the fast path leaves calls with this argument to Python: it is placed, and in the
    host's memory."""
    return is_placed(x) and _array_of(x).device_number is None


def _array_of(x: Any) -> Any:
    """An array, of keys the one that holds them."""
    return x.packed if type(x) is KeyArray else x


def are_each_on_one_cpu(leaves: Sequence[Any]) -> bool:
    """Whether the arguments that are placed in the host's memory are on one CPU device each: that the fast path
    knows."""
    return all(
        type(x.placement) is SingleDeviceSharding and x.placement.device_list[0].platform == "cpu"
        for x in leaves
        if is_pythons(x)
    )


def settle(leaves: Sequence[Any], names: Callable[[int], str], function: str) -> None:
    """Let the arguments of a program for a GPU that belong on one lie there. Raises ValueError where
    two were put on different devices."""
    common_devices(leaves, names, function)
    for x in leaves:
        if is_pythons(x) and x.placement.num_devices == 1 and x.placement.device_list[0].platform == "cuda":
            runtime.move_to_device(_array_of(x), x.placement.device_list[0].gpu_number)


def as_sharding(device: Any, function: str = "device_put") -> Sharding:
    """A Device, a Sharding, a Format, or a PartitionSpec over the current mesh, as a Sharding that a function is given.
    ValueError for anything else, TypeError for a Format whose layout is the compiler's choice."""
    if isinstance(device, Format):
        if device.layout is not None and not isinstance(device.layout, Layout):
            raise TypeError(
                f"`Layout.AUTO` cannot be used in place of a device-local layout in {function}. Got {device}"
            )
        device.check()
        device = device.sharding
    if isinstance(device, Device):
        return SingleDeviceSharding(device)
    if isinstance(device, Sharding):
        return device
    if isinstance(device, PartitionSpec):
        over = over_current_mesh(device)
        if over is None:
            raise ValueError(
                f"Please set a mesh via `{library}.set_mesh` if a PartitionSpec is passed to {function}: got "
                f"{device!r} where no mesh is current. Or give NamedSharding(mesh, spec)"
            )
        return over
    raise ValueError(
        f"{function} takes a Device (of {library}.devices()) or a Sharding, got {device!r}"
    )


# ---- device_put ---------------------------------------------------------------------------------
def device_put(x: Any, device: Any, *, donate: Any = False, may_alias: Any = None) -> Any:
    """See lamina.device_put."""

    def is_place(value: Any) -> bool:
        return value is None or isinstance(value, (Device, Sharding, PartitionSpec, MemorySpace, Format))

    leaves, treedef = tree.flatten(x)
    try:
        places = tree.broadcast_prefix(device, x, is_place)
        flags = [tree.broadcast_prefix(f, x, lambda v: v is None) for f in (donate, may_alias)]
    except ValueError as e:
        raise ValueError(
            f"device_put device specification must be a tree prefix of the corresponding value: {e}"
        ) from None
    return tree.unflatten(treedef, [_put(*each) for each in zip(leaves, places, *flags)])


def _of_format(form: Format, x: Any) -> Any:
    """The sharding of a format. Raises ValueError where its layout is not said, or does not fit the array."""
    if form.layout is not None and not isinstance(form.layout, Layout) or form.sharding is None:
        raise ValueError(
            f"sharding and layout in a `Format` that device_put is given should be concrete. Got {form} for input "
            f"{get_aval(x).str_short()}"
        )
    form.check(get_aval(x).shape)
    return form.sharding


def _put(x: Any, place: Any, donate: Any, may_alias: Any) -> Any:
    if isinstance(place, MemorySpace):
        place = None  # a device has one memory here
    if isinstance(place, Format):
        place = _of_format(place, x)
    if isinstance(x, Tracer):
        return x if place is None else constrain(x, as_sharding(place))
    if place is not None and isinstance(getattr(place, "mesh", None), AbstractMesh):
        return constrain(x, place)
    if type(x) is KeyArray:
        return x if place is None else put_value(x, as_sharding(place))
    if donate and may_alias:
        raise ValueError("device_put: may_alias and donate cannot be True at the same time.")
    guards.check_transfers((x,), explicit=True)
    array = runtime.to_array(x)
    if may_alias is False and array is x:
        array = x.copy()
    placed = array if place is None else put(array, as_sharding(place))
    if donate and isinstance(x, ArrayImpl) and placed is not x:
        if may_alias is None and not placed.shards:
            placed = placed.copy()
        x.delete()
    return placed


def constrain(x: Any, sharding: Sharding) -> Any:
    """A traced value, whose placement (where it is a result) will be this."""
    from lamina.sharding.constraint import sharding_constraint_p

    return sharding_constraint_p.bind(x, sharding=sharding)


def put_value(x: Any, sharding: Sharding) -> Any:
    """An array, of keys or of numbers, under a sharding; what has no values (float0) as it is."""
    if isinstance(x, np.ndarray) and x.dtype == dtypes.float0:
        return x
    if type(x) is KeyArray:
        return KeyArray(packed=put(x.packed, sharding), dtype=x.dtype)
    return put(runtime.to_array(x), sharding)


def put(array: ArrayImpl, sharding: Sharding) -> ArrayImpl:
    """The array under a sharding. No content moves before the shards are asked for."""
    on_gpu = sharding.num_devices == 1 and sharding.device_list[0].platform == "cuda"
    if isinstance(sharding, NamedSharding):
        check_divides(sharding, array.shape, "One of device_put args")
        if PartitionSpec.UNCONSTRAINED in tuple(sharding.spec):  # nothing is left to a partitioner
            sharding = sharding.update(spec=sharding.spec.closed())
    if array.placement == sharding and (array.device_number is not None) == on_gpu:
        return array
    if array.shards is not None and not array.sharding.is_readable_here:
        from lamina.sharding.moves import move

        return move(array, sharding)
    if array.shards is not None:
        moved = _moved_whole(array, sharding)
        if moved is not None:
            return moved
        array.numpy_view()  # gathers: the shards of the new sharding are cut from the whole
    if on_gpu:
        array = runtime.to_device(array, sharding.device_list[0].gpu_number)
    elif array.device_number is not None:
        array = runtime.to_host(array)
    return runtime.place_array(array, sharding)


# ---- shards -------------------------------------------------------------------------------------
def shards_of(array: ArrayImpl, sharding: Sharding) -> list[ArrayImpl]:
    """The parts of an array for each device of a sharding that is of this process. Parts that are
    contiguous in memory share it."""
    if array.shards is not None and array.placement is not None:
        mine = array.placement
        if mine == sharding or mine.is_equivalent_to(sharding, array.ndim):
            return array.shards
    indices = sharding.indices(array.shape)
    is_sum = sharding.combiner is not None and sharding.combiner.name == "sum"
    terms = sharding.terms() if is_sum else None
    parts: dict[Any, ArrayImpl] = {}
    out = []
    gpus = sharding.device_list if sharding.device_list[0].platform == "cuda" else None
    for position in sharding.here:
        index = indices[position]
        has_none = terms is not None and terms[position] > 0  # the first has all of the sum
        key = has_none, *((s.start, s.stop) for s in index)
        if key not in parts:
            parts[key] = _zeros_like_part(array, index) if has_none else _part(array, index)
        part = parts[key]
        out.append(part if gpus is None else runtime.to_device(part, gpus[position].gpu_number))
    if array.placement == sharding and (len(parts) > 1 or gpus is not None):
        array.shards = out
    return out


def _moved_whole(array: ArrayImpl, sharding: Sharding) -> ArrayImpl | None:
    """The array under a sharding each part of which is one that it has, on whichever device: GPUs copy those from
    one to the other. None where parts are to be cut anew."""
    if not isinstance(sharding, NamedSharding) or not isinstance(array.placement, NamedSharding):
        return None
    if sharding.combiner is not None or array.placement.combiner is not None:
        return None

    def extent(index: Index) -> tuple[tuple[int, int, int], ...]:
        return tuple(s.indices(n) for s, n in zip(index, array.shape, strict=True))

    assert array.shards is not None
    there: dict[Any, list[ArrayImpl]] = {}
    indices = array.placement.indices(array.shape)
    for position, shard in zip(array.placement.here, array.shards, strict=True):
        there.setdefault(extent(indices[position]), []).append(shard)
    indices, parts = sharding.indices(array.shape), []
    for position in sharding.here:
        found, device = there.get(extent(indices[position])), sharding.device_list[position]
        if found is None:
            return None
        number = device.gpu_number if device.platform == "cuda" else None
        part = next((one for one in found if one.device_number == number), found[0])
        if part.device_number == number:
            parts.append(runtime.place_array(part, part.placement))
        else:
            parts.append(runtime.to_host(part) if number is None else runtime.to_device(part, number))
    return from_shards(array.shape, sharding, parts, array.weak_type)


def _part(array: ArrayImpl, index: Index) -> ArrayImpl:
    if all(s == slice(None) for s in index):
        return runtime.place_array(array, None) if array.placement is not None else array
    view = array.numpy_view()[index]
    if view.flags.c_contiguous and view.size:
        return runtime.wrap_memory(array.buffer, view.ctypes.data, array.dtype, view.shape)
    return runtime.array_from_numpy(view, False)


def _zeros_like_part(array: ArrayImpl, index: Index) -> ArrayImpl:
    shape = [len(range(*s.indices(n))) for s, n in zip(index, array.shape, strict=True)]
    return runtime.array_from_numpy(np.zeros(shape, array.dtype), False)


_COMBINED = {"sum": np.add, "max": np.maximum, "min": np.minimum}


def gather(array: ArrayImpl) -> ArrayImpl:
    """An array with the content of the shards of `array`."""
    sharding, shards = array.placement, array.shards
    assert shards is not None
    indices = sharding.indices(array.shape)
    if sharding.is_fully_replicated:
        return runtime.to_host(shards[0])
    if not sharding.is_fully_addressable:
        raise RuntimeError(
            f"an array of shape {array.shape} spans devices of several processes, of which this one can read "
            f"only its own part: {library}.experimental.multihost_utils.process_allgather(x) gives all of "
            "it to every process, x.addressable_shards the parts that are here"
        )
    whole = np.empty(array.shape, array.dtype)
    filled = set()
    combine = None if sharding.combiner is None else _COMBINED[sharding.combiner.name]
    terms = sharding.terms()
    for index, term, shard in zip(indices, terms, shards, strict=True):
        key = tuple((s.start, s.stop) for s in index)
        if combine is not None and key in filled and (term, *key) not in filled:
            whole[index] = combine(whole[index], shard.numpy_view())
        elif key not in filled:
            whole[index] = shard.numpy_view()
        filled |= {key, (term, *key)}
    return runtime.wrap_memory(whole, whole.ctypes.data, array.dtype, array.shape)


def from_shards(
    shape: Sequence[int], sharding: Sharding, shards: Sequence[ArrayImpl], weak_type: bool = False
) -> ArrayImpl:
    """The array of which these are the parts, in the order of the sharding's devices here."""
    if isinstance(sharding, SingleDeviceSharding):
        return runtime.place_array(shards[0], sharding)
    dtype = shards[0].dtype
    return runtime.sharded_array(sharding, list(shards), dtype, tuple(shape), weak_type)


# ---- results of computations --------------------------------------------------------------------
def of_programs() -> NamedSharding | None:
    """How results lie of which nothing says where: whole on each device of the mesh that set_mesh made
    current; None where none is, and they are where they were computed."""
    mesh, axes = current_mesh.of_programs(), current_mesh.abstract()
    if mesh is None:
        return None
    if axes is not None and not axes.empty and axes != mesh.abstract_mesh:
        mesh = axes.over(mesh.device_list)
    return NamedSharding(mesh, PartitionSpec())


def common_devices(leaves: Sequence[Any], names: Callable[[int], str], function: str) -> Any:
    """How one of the arguments of a call was placed, or, where none was, what the current mesh says. Raises
    ValueError where two are on different devices, or one is not on those of the current mesh."""
    first: tuple[int, Sharding] | None = None
    of_mesh = of_programs()
    for i, x in enumerate(leaves):
        if not is_placed(x) or not x.committed:
            continue
        if first is not None and first[1].device_list != x.placement.device_list:
            a, b = leaves[first[0]], x
            raise ValueError(
                "Received incompatible devices for jitted computation. Got argument "
                f"{names(first[0])} of {function} with shape {get_aval(a).str_long()} and device "
                f"ids {[d.id for d in first[1].device_list]} and argument {names(i)} of {function} "
                f"with shape {get_aval(b).str_long()} and device ids "
                f"{[d.id for d in x.placement.device_list]}"
            )
        if first is None:
            first = (i, x.placement)
            if of_mesh is not None and x.placement.device_list != of_mesh.device_list:
                raise ValueError(
                    "Received incompatible devices for jitted computation. Got argument "
                    f"{names(i)} of {function} with shape {get_aval(x).str_long()} and device ids "
                    f"{[d.id for d in x.placement.device_list]}, and the context mesh (set_mesh) has device ids "
                    f"{[d.id for d in of_mesh.device_list]}: device_put moves the argument there"
                )
    return of_mesh if first is None else first[1]


def by_shape(leaves: Sequence[Any]) -> dict[Any, Sharding]:
    """For each shape among arguments that are spread over a mesh, how the first one is."""
    found: dict[Any, Sharding] = {}
    for x in leaves:
        if is_placed(x) and isinstance(x.placement, NamedSharding):
            found.setdefault(x.shape, x.placement)
    return found


def place_results(found: Sharding | None, by_shape: dict[Any, Sharding], out: Any) -> Any:
    """The result of a computation on arguments placed as `found`, placed on the same devices.

    On one device, results are there. On a mesh, a result of the shape of an argument is split like
    that argument, any other is whole on every device.
    """
    if found is None:
        return out

    def one(x: Any) -> Any:
        if type(x) is KeyArray:
            return KeyArray(packed=one(x.packed), dtype=x.dtype)
        if not isinstance(x, ArrayImpl) or x.committed:
            return x
        if isinstance(found, NamedSharding):
            whole = NamedSharding(found.mesh, PartitionSpec())
            return runtime.place_array(x, by_shape.get(x.shape, whole))
        return runtime.place_array(x, found)

    return tree.map(one, out)


POSITIONAL = "positional arguments tuple"


def _spread(name: str, shardings: Any, values: Any, what: str) -> list[Any]:
    """A place for each array. Raises ValueError, which says where, for a tree that is no prefix."""
    try:
        return tree.broadcast_prefix(shardings, values, _is_place)
    except ValueError as e:
        at, note = tree.where_no_prefix(shardings, values, _is_place), ""
        if isinstance(values, tuple) and type(shardings) not in (tuple, list):
            note = f" Note that {name} is not a tuple, as the arguments are: it might need to be wrapped in one."
        elif isinstance(values, tuple) and len(shardings) != len(values):
            note = (
                f" In particular, pjit {name} must either be a Sharding, a PartitionSpec, or a tuple of length equal "
                f"to the number of positional arguments. But pjit {name} is the wrong length: got a tuple or list of "
                f"length {len(shardings)} for an args tuple of length {len(values)}."
            )
        raise ValueError(
            f"pjit {name}{at} specification must be a tree prefix of the {what}.{note} Got specification "
            f"{shardings} for value tree {tree.structure(values)}: {e}"
        ) from None


def _is_place(value: Any) -> bool:
    return value is None or isinstance(value, (Sharding, PartitionSpec))


def check_places(name: str, shardings: Any) -> None:
    """Raises ValueError where in_shardings or out_shardings of a jit, of this name, leave a dimension open, name an
    axis twice or a mesh without axes, TypeError for what is no place."""
    for place in tree.leaves(shardings, is_leaf=_is_place):
        if not _is_place(place):
            raise TypeError(
                f"{name} leaf specifications are expected to be PartitionSpec instances or None, but got {place}, "
                "which is no Sharding, either"
            )
        if isinstance(place, NamedSharding) and place.mesh.empty:
            raise ValueError(f"{name} of jit got an empty NamedSharding, over no mesh: {place}")
        spec = getattr(place, "spec", place)
        if isinstance(spec, PartitionSpec) and (twice := spec.twice()):
            raise ValueError(
                f"A single {name} specification can map every mesh axis to at most one positional dimension, but "
                f"{spec} has duplicate entries for `{twice[0]}`"
            )
        if isinstance(spec, PartitionSpec) and PartitionSpec.UNCONSTRAINED in tuple(spec):
            raise ValueError(
                f"Unconstrained dims are not allowed in {name} of jit: got {place}. None leaves all of an array "
                "to the partitioner"
            )


def _sharding(place: Any) -> Sharding | None:
    if isinstance(place, PartitionSpec):
        over = over_current_mesh(place)
        if over is None:
            raise RuntimeError(
                "pjit requires a non-empty mesh in context if in_shardings or out_shardings are PartitionSpecs, as "
                f"{place}: set one by {library}.set_mesh, or give NamedSharding(mesh, spec)"
            )
        return over
    if not _is_place(place):
        raise TypeError(
            f"in_shardings and out_shardings of jit are trees of Shardings, PartitionSpecs and None, got {place!r}"
        )
    return place


def put_arguments(args: tuple[Any, ...], shardings: Any, function: str) -> tuple[Any, ...]:
    """The arguments of a jit with in_shardings, put there. Raises ValueError for one that lies
    elsewhere already."""
    leaves, treedef = tree.flatten(args)
    shardings = tuple(shardings) if isinstance(shardings, list) else shardings
    places = _spread("in_shardings", shardings, args, POSITIONAL)
    out = []
    for x, place, path in zip(leaves, map(_sharding, places), tree.paths(args), strict=True):
        if place is None:
            out.append(x)
            continue
        array = x if type(x) is KeyArray else runtime.to_array(x)
        if isinstance(place, NamedSharding):
            check_rank(place, array.shape, "One of pjit arguments")
        if array.committed and not array.placement.is_equivalent_to(place, array.ndim):
            raise ValueError(
                "Sharding passed to jit does not match the sharding on the respective arg. Got "
                f"in_shardings {place}, and argument args{path} of {function} with "
                f"{array.placement}: device_put it first, or leave in_shardings out"
            )
        out.append(put_value(array, place))
    return tree.unflatten(treedef, out)


def place_of(x: Any) -> Sharding | None:
    """Where somebody put x, or said that it would be."""
    if isinstance(x, (ArrayImpl, KeyArray)):
        return x.placement if x.placement is not None and x.committed else None
    sharding = getattr(x, "sharding", None) if isinstance(x, ShapeDtypeStruct) else None
    return sharding if isinstance(sharding, Sharding) else None


def places_of(
    shardings: Any, structure: tree.PyTreeDef, name: str = "out_shardings", what: str = "result"
) -> list[Sharding | None]:
    """Where in_shardings or out_shardings of a jit put each array of such a tree."""
    if shardings is None:
        return [None] * structure.num_leaves
    sample = tree.unflatten(structure, list(range(structure.num_leaves)))
    return list(map(_sharding, _spread(name, shardings, sample, what)))


def put_results(out: Any, shardings: Any) -> Any:
    """The result of a jit with out_shardings, put there."""
    leaves, treedef = tree.flatten(out)
    places = tree.broadcast_prefix(shardings, out, _is_place)
    return tree.unflatten(
        treedef,
        [
            x if place is None else put_value(x, place)
            for x, place in zip(leaves, map(_sharding, places), strict=True)
        ],
    )
