"""Which thread of which block this is, and waiting for the others, as scalars."""

from __future__ import annotations

from lamina.passes.emit.scalars import Scalar
from lamina.passes.kernels.gpu.device.threads import barrier, gpu_id, shuffle_xor


def thread(dimension: str = "x") -> Scalar:
    """This thread's number in its block."""
    return Scalar(gpu_id("thread_id", dimension))


def block(dimension: str = "x") -> Scalar:
    """The block's number in the grid."""
    return Scalar(gpu_id("block_id", dimension))


def synchronize() -> None:
    """All threads of the block wait for each other."""
    barrier()


def of_lane(value: Scalar, offset: int) -> Scalar:
    """What the lane has whose number differs in the bits of `offset`."""
    return Scalar(shuffle_xor(value.value, offset))
