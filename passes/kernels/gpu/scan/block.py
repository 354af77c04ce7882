"""What the threads of a block have together: those before each one, and all."""

from __future__ import annotations

from collections.abc import Callable

from lamina.passes.emit.scalars import Array, Scalar, choose, when
from lamina.passes.kernels.gpu.device.thread_numbers import of_lane, synchronize, thread
from lamina.passes.kernels.gpu.device.threads import WARP


def over_block(
    value: Scalar, slots: Array, half: Scalar, threads: int,
    combine: Callable[[Scalar, Scalar], Scalar], neutral: Scalar,
) -> tuple[Scalar, Scalar]:  # fmt: skip
    """(what the threads before have, what all have), combined in their order. `slots` are shared, one
    for each warp in each of some halves, `half` the one that nobody reads since the last barrier."""
    lane, warp = thread() % WARP, thread() // WARP
    before, total = neutral, value
    offset = 1
    while offset < WARP:
        theirs = of_lane(total, offset)
        is_upper = (lane & offset).differs(0)
        before = choose(is_upper, combine(theirs, before), before)
        total = combine(theirs, total)
        offset *= 2
    if threads == WARP:
        return before, total
    with when(lane.equals(0)):
        slots[half, warp] = total
    synchronize()
    below, all_ = neutral, neutral
    for other in range(threads // WARP):
        theirs = slots[half, other]
        below = choose(warp > other, combine(below, theirs), below)
        all_ = combine(all_, theirs)
    return combine(below, before), all_
