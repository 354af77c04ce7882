"""Making sharded arrays from what is on each device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lamina import placement, runtime
from lamina.array import ArrayImpl
from lamina.core import ShapedArray, get_aval, tree
from lamina.core.library import library
from lamina.core.manual_axes import UnreducedKind
from lamina.core.placed import WHOLE
from lamina.core.trace import Tracer
from lamina.errors import UnexpectedTracerError
from lamina.key_array import KeyArray
from lamina.sharding.shardings import Index, NamedSharding, Sharding
from lamina.sharding.spec import PartitionSpec


def make_array_from_callback(
    shape: Sequence[int],
    sharding: Sharding,
    data_callback: Callable[[Index], Any],
    dtype: Any = None,
) -> ArrayImpl:
    """The array whose part `index` is data_callback(index), asked for once for each part that a device
    of this process has. Every process of the sharding calls it.

    shape          of the whole array.
    sharding       how it is cut: a sharding, a device, or a PartitionSpec over the current mesh.
    data_callback  takes a tuple of slices, gives an array of that part's shape.
    dtype          of the array; by default that of the parts.

    >>> data, device = np.arange(4), lamina.devices()[0]
    >>> sharding = lamina.sharding.SingleDeviceSharding(device)
    >>> lamina.make_array_from_callback((4,), sharding, lambda index: data[index]).tolist()
    [0, 1, 2, 3]
    """
    parts: dict[Any, ArrayImpl] = {}
    shards = []
    keys: Any = None  # the dtype, where parts are of random keys
    sharding = placement.as_sharding(sharding, "make_array_from_callback")
    expected = sharding.shard_shape(shape)
    indices = sharding.indices(shape)
    for index in [indices[position] for position in sharding.here]:
        key = tuple((s.start, s.stop) for s in index)
        if key not in parts:
            data = data_callback(index)
            if isinstance(data, Tracer):
                raise UnexpectedTracerError(
                    f"{library}.make_array_from_callback cannot be called within a traced context: its callback "
                    f"gave {data}, and an array is made of values that are known"
                )
            if isinstance(data, KeyArray):
                keys, data = data.dtype, data.packed
            array = runtime.to_array(data if dtype is None or keys else np.asarray(data, dtype))
            if array.shape != expected:
                raise ValueError(
                    f"Expected shard shape {expected} doesn't match the single device array shape "
                    f"{array.shape}, which make_array_from_callback's callback gave for the part {index}"
                )
            parts[key] = array
        shards.append(parts[key])
    whole = placement.from_shards(shape, sharding, shards)
    return whole if keys is None else KeyArray(packed=whole, dtype=keys)  # type: ignore[return-value]


def make_array_from_single_device_arrays(
    shape: Sequence[int], sharding: Sharding, arrays: Sequence[ArrayImpl], *, dtype: Any = None
) -> ArrayImpl:
    """The array whose parts are these, each on its device of the sharding.

    shape     of the whole array.
    sharding  how it is cut.
    arrays    its parts, one for each device of this process.
    dtype     of the array; by default that of the parts.

    Raises ValueError where there are too few, or a part has another shape or dtype, or is elsewhere.

    >>> x = jnp.arange(4)
    >>> lamina.make_array_from_single_device_arrays((4,), x.sharding, [x]).tolist()
    [0, 1, 2, 3]
    """
    if not isinstance(arrays, (list, tuple)):
        raise TypeError(
            f"{library}.make_array_from_single_device_arrays `arrays` argument must be a list or tuple, got "
            f"{type(arrays)}"
        )
    if arrays and all(isinstance(x, KeyArray) for x in arrays):
        of_numbers = make_array_from_single_device_arrays(shape, sharding, [x.packed for x in arrays])
        return KeyArray(packed=of_numbers, dtype=arrays[0].dtype)  # type: ignore[return-value]
    for x in arrays:
        if not isinstance(x, ArrayImpl):
            raise ValueError(
                f"{library}.make_array_from_single_device_arrays requires a list of concrete arrays, got one of "
                f"type {type(x)}"
            )
        if len(x.sharding.device_list) > 1:
            raise ValueError(
                "When making an array from single-device arrays the input arrays must have one shard each. "
                f"An argument array had {len(x.sharding.device_list)} shard(s)."
            )
    devices = [sharding.device_list[position] for position in sharding.here]
    if dtype is None and not devices:
        raise ValueError(
            "If the Array has no addressable shards, `dtype` must be provided via the `dtype` argument to "
            f"`{library}.make_array_from_single_device_arrays`."
        )
    if len(arrays) != len(devices):
        raise ValueError(
            f"Expected {len(devices)} per-device arrays (this is how many devices are "
            f"addressable by the sharding), but got {len(arrays)}"
        )
    expected = sharding.shard_shape(shape)
    where = {x.device: x for x in arrays}
    if len(where) < len(arrays):
        raise ValueError(
            "When making an array from single-device arrays, the input arrays must be from distinct devices, "
            f"got {[x.device for x in arrays]}"
        )
    if set(where) != set(devices):
        missing, extra = ({d.id for d in some} for some in (set(devices) - set(where), set(where) - set(devices)))
        raise ValueError(
            "Addressable devices and per-device arrays devices do not match. Sharding contains "
            f"devices {missing} that are not present in per-device arrays. Per-device arrays contain devices "
            f"{extra} that are not present in the sharding."
        )
    wanted = arrays[0].dtype if dtype is None else np.dtype(dtype)
    for x in arrays:
        if x.dtype != wanted and dtype is not None:
            raise ValueError(
                f"If `dtype` is provided to `{library}.make_array_from_single_device_arrays`, it must match the "
                f"dtype of the addressable shards. Got dtype={wanted.name} and a shard of {x.dtype.name}"
            )
        if x.dtype != wanted:
            raise ValueError(
                "Input buffers to `Array` must have matching dtypes. Got "
                f"{x.dtype.name}, expected {wanted.name}"
            )
        if x.shape != expected:
            raise ValueError(
                f"When making an array from single-device arrays the input arrays must have the "
                f"shape of a shard. Got {x.shape}, expected {expected} for {sharding}"
            )
    shards = [runtime.place_array(where[d], None) for d in devices]
    return placement.from_shards(shape, sharding, shards)


def make_array_from_process_local_data(
    sharding: Sharding, local_data: Any, global_shape: Any = None
) -> Any:
    """An array of which each process gives the part that its devices hold.

    sharding      how the array is cut: a sharding, a device, or a PartitionSpec over the current mesh.
    local_data    a pytree of arrays: what this process holds, its parts side by side in their order.
    global_shape  the shape of the whole array, or a pytree of such. Where it is local_data's along a
                  dimension, the data is the whole along that. None: what the parts of all processes
                  make.

    Raises ValueError where the data is no part of such an array.

    >>> sharding = lamina.sharding.SingleDeviceSharding(lamina.devices()[0])
    >>> lamina.make_array_from_process_local_data(sharding, np.arange(4)).tolist()
    [0, 1, 2, 3]
    """

    sharding = placement.as_sharding(sharding, "make_array_from_process_local_data")

    def one(data: Any, shape: Any) -> Any:
        data = np.asarray(data)
        return _of_process(sharding, data, None if shape is None else tuple(shape))

    if global_shape is None or _is_shape(global_shape):
        return tree.map(lambda x: one(x, global_shape), local_data)
    leaves, structure = tree.flatten(local_data)
    shapes = tree.broadcast_prefix(global_shape, local_data, _is_shape)
    return tree.unflatten(structure, [one(x, shape) for x, shape in zip(leaves, shapes, strict=True)])


def _is_shape(value: Any) -> bool:
    return value is None or (isinstance(value, tuple) and all(isinstance(n, int) for n in value))


def _of_process(sharding: Sharding, data: np.ndarray, shape: tuple[int, ...] | None) -> ArrayImpl:
    parts = tuple(map(sharding.parts, range(data.ndim)))
    held = _parts_here(sharding, parts)
    if shape is None:
        for dim, n in enumerate(data.shape):
            if n % len(held[dim]):
                raise ValueError(
                    f"this process holds {len(held[dim])} of {parts[dim]} parts along dimension {dim} of "
                    f"{sharding}, and its data of shape {data.shape} can't be cut so"
                )
        shape = tuple(n // len(h) * p for n, h, p in zip(data.shape, held, parts, strict=True))
    if len(shape) != data.ndim:
        raise ValueError(f"global_shape {shape} and data of shape {data.shape} differ in rank")
    sizes = sharding.shard_shape(shape)
    for dim, n in enumerate(data.shape):
        if n not in (shape[dim], sizes[dim] * len(held[dim])):
            raise ValueError(
                f"along dimension {dim} of an array of shape {shape} under {sharding} this process holds "
                f"{sizes[dim] * len(held[dim])}, or gives all {shape[dim]}; its data has {n}"
            )

    def part(index: Index) -> np.ndarray:
        place = []
        for dim, at in enumerate(index):
            if data.shape[dim] == shape[dim]:
                place.append(at)
                continue
            start = held[dim].index((at.start or 0) // sizes[dim]) * sizes[dim]
            place.append(slice(start, start + sizes[dim]))
        return data[tuple(place)]

    return make_array_from_callback(shape, sharding, part)


def _parts_here(sharding: Sharding, parts: tuple[int, ...]) -> list[list[int]]:
    """Which parts of each dimension this process holds."""
    indices = sharding.indices(parts)  # of an array with one element in each part
    mine = [indices[position] for position in sharding.here]
    return [sorted({index[dim].start or 0 for index in mine}) for dim in range(len(parts))]


def reshard(xs: Any, out_shardings: Any) -> Any:
    """A pytree of arrays under other shardings.

    xs             a pytree of arrays.
    out_shardings  a pytree prefix of shardings or PartitionSpecs.

    >>> sharding = lamina.sharding.SingleDeviceSharding(lamina.devices()[0])
    >>> lamina.reshard(jnp.arange(3), sharding).tolist()
    [0, 1, 2]
    """
    from lamina.sharding.constraint import sharding_constraint_p
    from lamina.sharding.explicit import in_types
    from lamina.sharding.shardings import check_rank

    def is_place(value: Any) -> bool:
        return value is None or isinstance(value, (Sharding, PartitionSpec))

    leaves, structure = tree.flatten(xs)
    out = []
    for x, place in zip(leaves, tree.broadcast_prefix(out_shardings, xs, is_place), strict=True):
        if place is None or getattr(getattr(place, "mesh", None), "empty", False):
            raise ValueError(
                "Reshard should only be used with out_shardings which are non-None and have a non-empty mesh. Got "
                f"sharding {place}"
            )
        if not isinstance(place, Sharding) or isinstance(place, NamedSharding):
            place = in_types(place, "reshard")
            check_rank(place, get_aval(x).shape, "One of reshard arguments")
            if place.spec.unreduced:
                _check_terms(get_aval(x), place)
        out.append(sharding_constraint_p.bind(x, sharding=place))
    return tree.unflatten(structure, out)


def _check_terms(aval: ShapedArray, place: NamedSharding) -> None:
    """Raises ValueError where what a type says are no such terms, nor can become them."""
    spec = place.spec
    have = WHOLE if aval.placed is None else aval.placed.sums
    if have.unreduced and have.kind is not spec.unreduced_kind:
        raise ValueError(
            f"The unreduced_kind of input and output sharding passed to `{library}.reshard` should be the same. Got "
            f"{aval.str_short()}, whose terms are combined by {have.kind}, and {place}"
        )
    if spec.unreduced_kind is not UnreducedKind.sum and not spec.unreduced <= have.unreduced:
        raise ValueError(
            f"out_sharding {place} passed to `{library}.reshard` cannot be more unreduced than the input, "
            f"{aval.str_short()}: a whole array can be made terms of a sum alone"
        )
