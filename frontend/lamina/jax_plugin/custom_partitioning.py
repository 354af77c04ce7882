"""Functions by which JAX's users say how a call is partitioned (`jax.custom_partitioning`), asked while a program
is compiled."""

from __future__ import annotations

import sys
from math import prod
from typing import Any

from lamina.jax_plugin.failures import PluginError
from lamina.jax_plugin.op_shardings import op_sharding
from lamina.partitioning import Answer, Question, Sharding

_TARGET = b"CustomSPMDPartitioning"


def has_custom_calls(code: bytes) -> bool:
    """Whether a program may call functions that their user partitions, which it names by numbers of this process."""
    return _TARGET in code


def answered(question: Question) -> Answer:
    """What the user's function says. Raises PluginError with what it raises."""
    from jaxlib import xla_client

    partition = sys.modules["jax._src.custom_partitioning"]._custom_partitioning_partition
    (operands, lie), (results, made) = map(_shapes, (question.operands, question.results))
    alone = len(results) == 1
    shape = results[0] if alone else xla_client.Shape.tuple_shape(results)
    sharding = made[0] if alone else xla_client.HloSharding.tuple_sharding(shape, made)
    try:
        code, inputs, outputs = partition(operands, lie, shape, sharding, question.key.encode())
    except Exception as error:
        raise PluginError(
            "INTERNAL", f"custom_partitioning: {type(error).__name__}: {error}"
        ) from error
    outputs = [outputs] if alone else outputs.tuple_elements()
    return Answer(code, list(map(_tiles, inputs, operands)), list(map(_tiles, outputs, results)))


def _shapes(given: list[tuple[str, Sharding]]) -> tuple[list[Any], list[Any]]:
    """Types and shardings as objects of jaxlib."""
    from jaxlib import xla_client

    from lamina.dialects.context import context
    from lamina.dialects.types import dtype_of, shape_of
    from lamina.dialects.vendors import ir

    shapes, shardings = [], []
    with context():
        for text, sharding in given:
            type = ir.Type.parse(text)
            message = xla_client.OpSharding()
            message.ParseFromString(op_sharding(sharding))
            shapes.append(xla_client.Shape.array_shape(dtype_of(type), shape_of(type)))
            shardings.append(xla_client.HloSharding.from_proto(message))
    return shapes, shardings


def _tiles(sharding: Any, shape: Any) -> tuple[list[int], list[int]]:
    """The numbers of parts along each dimension and the devices in the parts' order. Raises PluginError for
    shardings other than such."""
    if sharding.is_replicated():
        return [], []
    tiles = list(sharding.tile_assignment_dimensions())
    rank = len(shape.dimensions())
    copies = prod(tiles[rank:])
    if not sharding.is_tiled() or (copies > 1 and not sharding.replicate_on_last_tile_dim()):
        raise PluginError("UNIMPLEMENTED", f"custom_partitioning: arrays that lie as {sharding}")
    return tiles[:rank], list(sharding.tile_assignment_devices())
