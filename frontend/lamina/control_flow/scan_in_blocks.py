"""An associative scan in blocks: what few threads with caches do in two passes over the data.

    totals of blocks       each block a lane, whose elements are combined one after the other
    prefixes of totals     the same on fewer elements, by itself
    seeds                  the first element of each block, combined with all before it
    blocks                 each a lane again, from its seed on

so that elements are read twice and written once, where the tree's levels read and write them all a
few times. The cuts depend on the shape alone. Blocks are short: rounding errors grow with their
length, times the number of levels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log, prod
from typing import Any

from lamina.control_flow.checkpoint import checkpoint
from lamina.control_flow.lanes import lanes_p
from lamina.control_flow.residuals import hoist_consts
from lamina.control_flow.scan import scan
from lamina.core.trace import get_aval
from lamina.interpreters.batching import batch_flat, move_batch
from lamina.interpreters.staging import trace_to_jaxpr

_BLOCK = 32  # elements of a block, if nothing else speaks for another length
_LENGTHS = range(24, 65)  # what others may speak for
_SEQUENCE = 64  # elements that are not cut into blocks
_TOGETHER = 64  # numbers that lanes of small elements have together
_WIDE = 8192  # numbers of an element that are work for threads by themselves

Step = Callable[[Sequence[Any], Sequence[Any]], list[Any]]
"""Two elements, each a list of arrays, combined."""


def prefixes_in_blocks(step: Step, xs: Sequence[Any]) -> list[Any]:
    """The combination of the elements up to each, of arrays that hold them in dimension 0."""
    n = _shape(xs[0])[0]
    if n <= _SEQUENCE or _width(xs) >= _WIDE:
        return _in_sequence(step, xs)
    length = _block_length(n)
    blocks, rest = divmod(n, length)
    main = [_reshaped(_part(x, 0, n - rest), (blocks, length)) for x in xs]
    before = prefixes_in_blocks(step, _in_lanes(lambda *x: _total(step, x), main))
    firsts = [_at(x, 0, 1) for x in main]
    later = _of_all(step, [_part(x, 0, blocks - 1) for x in before], [_part(x, 1, blocks) for x in firsts])
    seeds = [_joined(_part(x, 0, 1), y) for x, y in zip(firsts, later, strict=True)]
    k = len(xs)
    out = _in_lanes(lambda *x: _from_seed(step, x[:k], x[k:]), [*seeds, *main])
    out = [_reshaped(x, (n - rest,), 2) for x in out]
    if not rest:
        return out
    last = [_at(x, blocks - 1) for x in before]
    ends = _steps(step, last, [_part(x, n - rest, n) for x in xs])
    return [_joined(x, y) for x, y in zip(out, ends, strict=True)]


def _block_length(n: int) -> int:
    """A length of blocks that leaves no rest, if there is one, the nearest to `_BLOCK`."""
    whole = [length for length in _LENGTHS if n % length == 0]
    return min(whole, key=lambda length: abs(log(length / _BLOCK)), default=_BLOCK)


# ---- one block, or all -------------------------------------------------------------------------
def _in_sequence(step: Step, xs: Sequence[Any]) -> list[Any]:
    if _width(xs) >= _WIDE:
        return _from_seed(step, [_at(x, 0) for x in xs], xs)
    one = [_reshaped(x, (1, _shape(x)[0])) for x in xs]
    whole = _in_lanes(lambda *x: _from_seed(step, [_at(y, 0) for y in x], x), one)
    return [_at(x, 0) for x in whole]


def _total(step: Step, xs: Sequence[Any]) -> list[Any]:
    def combined(carry: Any, x: Any) -> Any:
        return step(carry, x), None

    rest = [_part(x, 1, _shape(x)[0]) for x in xs]
    return scan(combined, [_at(x, 0) for x in xs], rest)[0]


def _from_seed(step: Step, seed: Sequence[Any], xs: Sequence[Any]) -> list[Any]:
    """The prefixes of a block whose first is `seed`."""
    later = _steps(step, seed, [_part(x, 1, _shape(x)[0]) for x in xs])
    return [_joined(_reshaped(x, (1,), 0), y) for x, y in zip(seed, later, strict=True)]


def _steps(step: Step, before: Sequence[Any], xs: Sequence[Any]) -> list[Any]:
    def combined(carry: Any, x: Any) -> Any:
        after = step(carry, x)
        return after, after

    return scan(combined, list(before), list(xs))[1]


def _in_lanes(program: Callable[..., list[Any]], args: Sequence[Any]) -> list[Any]:
    """program on each of the elements of dimension 0; differentiated, it computes again what it
    needs, while the elements are in the cache."""
    lanes = _shape(args[0])[0]
    avals = [a.without_axis(0) for a in map(get_aval, args)]
    lane = trace_to_jaxpr(checkpoint(program, prevent_cse=False), avals)
    lane, consts = hoist_consts(lane)
    widest = max(prod(a.shape[1:]) for a in avals if a.shape)
    return lanes_p.bind(
        *consts,
        *args,
        jaxpr=lane,
        size=lanes,
        batched=(*[False] * len(consts), *[True] * len(args)),
        block=max(1, _TOGETHER // widest),
    )


def _of_all(step: Step, a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
    """step on elements that are in dimension 0."""
    n, k = _shape(a[0])[0], len(a)
    outs, dims = batch_flat(lambda *x: step(x[:k], x[k:]), [*a, *b], [0] * (2 * k), n)
    return [move_batch(x, d, n) for x, d in zip(outs, dims, strict=True)]


# ---- arrays ------------------------------------------------------------------------------------
def _shape(x: Any) -> tuple[int, ...]:
    return get_aval(x).shape


def _width(xs: Sequence[Any]) -> int:
    return max(prod(_shape(x)[1:]) for x in xs)


def _part(x: Any, start: int, stop: int) -> Any:
    from lamina import lax

    return lax.slice_in_dim(x, start, stop)


def _at(x: Any, i: int, axis: int = 0) -> Any:
    from lamina import lax

    return lax.index_in_dim(x, i, axis, keepdims=False)


def _reshaped(x: Any, leading: tuple[int, ...], instead_of: int = 1) -> Any:
    """x with other leading dimensions."""
    from lamina import lax

    return lax.reshape(x, (*leading, *_shape(x)[instead_of:]))


def _joined(x: Any, y: Any) -> Any:
    from lamina import lax

    return lax.concatenate([x, y], 0)
