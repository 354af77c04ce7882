"""Arrays over several processes under another sharding: each process sends the others the parts of its own
that they need.

This is what `device_put` does, outside of any program. Within one, the partitioner makes collectives.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lamina import placement, runtime
from lamina.array import ArrayImpl
from lamina.runtime import processes
from lamina.sharding.boxes import Box, box_of, common, cut, shape_of
from lamina.sharding.shardings import Sharding


def move(array: ArrayImpl, to: Sharding) -> ArrayImpl:
    """The array under another sharding. Every process that has a device of either calls it."""
    if array.sharding.combiner is not None or to.combiner is not None:
        raise ValueError(
            f"an array over several processes goes from {array.sharding} to {to} in a program alone, since terms "
            "of a sum are added up: reshard it under jit"
        )
    mine = placement.shards_of(array, array.sharding)
    have, want = _boxes_by_process(array.sharding, array.shape), _boxes_by_process(to, array.shape)
    rank = processes.current().rank
    owned = {box: shard.numpy_view() for box, shard in zip(have[rank], mine, strict=True)}
    given = [
        b"".join(
            np.ascontiguousarray(cut(owned[source], source, part)).tobytes()
            for source, part in _pieces(have, rank, boxes)
        )
        for boxes in want
    ]
    received = processes.exchange("device_put", given)
    arrays = {box: np.empty(shape_of(box), array.dtype) for box in want[rank]}
    for process, data in enumerate(received):
        at = 0
        for _, part in _pieces(have, process, want[rank]):
            shape = shape_of(part)
            piece = np.frombuffer(data, array.dtype, int(np.prod(shape)), at).reshape(shape)
            at += piece.nbytes
            for box, whole in arrays.items():
                shared = common(box, part)
                if shared is not None:
                    cut(whole, box, shared)[...] = cut(piece, part, shared)
    shards = {box: runtime.array_from_numpy(x, False) for box, x in arrays.items()}
    return placement.from_shards(array.shape, to, [shards[box] for box in want[rank]], array.weak_type)


def whole_of(array: ArrayImpl) -> np.ndarray:
    """All of an array that spans processes, for each of them. All of them call it."""
    from lamina.sharding.shardings import NamedSharding
    from lamina.sharding.spec import PartitionSpec

    whole = move(array, NamedSharding(array.sharding.mesh, PartitionSpec()))
    return np.asarray(whole.addressable_shards[0].data)


def _boxes_by_process(sharding: Sharding, shape: Sequence[int]) -> list[list[Box]]:
    boxes: list[list[Box]] = [[] for _ in range(processes.current().size)]
    for device, index in zip(sharding.device_list, sharding.indices(shape), strict=True):
        boxes[device.process_index].append(box_of(index, shape))
    return boxes


def _pieces(have: list[list[Box]], source: int, wanted: list[Box]) -> list[tuple[Box, Box]]:
    """What a process sends one that wants these boxes: of which of its own which part. What several
    processes have, the first of them sends, each part once."""
    before = {box for boxes in have[:source] for box in boxes}
    out: dict[tuple[Box, Box], None] = {}
    for own in dict.fromkeys(have[source]):
        if own in before:
            continue
        for box in dict.fromkeys(wanted):
            shared = common(own, box)
            if shared is not None:
                out[own, shared] = None
    return list(out)
