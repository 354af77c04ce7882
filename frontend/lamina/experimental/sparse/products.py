"""Contractions of an array that is a list of values at places with a dense one, and of two such lists."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from lamina import numpy as jnp
from lamina.ops import segment_sum
from lamina.records import Record


class Places(Record):
    """Values (nse,), the places (nse, ndim) where they stand, and the shape of the array. `with_sparse` also takes
    values that are arrays (nse, *dense), of which it knows the shape of the other axes."""

    data: Any
    indices: Any
    shape: tuple[int, ...]

    def column(self, dims: tuple[int, ...]) -> Any:
        """The places along some dimensions, (nse, len(dims))."""
        return self.indices[:, np.array(dims, int)]

    def inside(self) -> Any:
        """Which of the values are not padding, (nse,)."""
        return (self.indices < np.array(self.shape, np.int32)).all(axis=-1)


class Contraction(Record):
    """The dimensions of both operands as `lax.dot_general` takes them."""

    contracting: tuple[tuple[int, ...], tuple[int, ...]]
    batch: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())

    @staticmethod
    def of(dimension_numbers: Any) -> Contraction:
        """From `((lhs, rhs), (lhs, rhs))`: contracting and batch dimensions."""
        (left, right), (batch_left, batch_right) = dimension_numbers
        return Contraction((tuple(left), tuple(right)), (tuple(batch_left), tuple(batch_right)))

    def swapped(self) -> Contraction:
        """For the operands the other way round."""
        return Contraction(self.contracting[::-1], self.batch[::-1])

    def rest(self, side: int, ndim: int) -> tuple[int, ...]:
        """The dimensions of an operand that are neither."""
        used = {d % ndim for d in (*self.contracting[side], *self.batch[side])}
        return tuple(d for d in range(ndim) if d not in used)

    def check(self, left: tuple[int, ...], right: tuple[int, ...]) -> None:
        """TypeError where sizes differ that must be the same."""
        for kind, (mine, theirs) in (("contracting", self.contracting), ("batch", self.batch)):
            sizes = tuple(left[d] for d in mine), tuple(right[d] for d in theirs)
            if sizes[0] != sizes[1]:
                raise TypeError(
                    f"dot_general requires {kind} dimensions to have the same shape, got {sizes[0]} and {sizes[1]}."
                )


def with_dense(left: Places, right: Any, numbers: Contraction) -> Any:
    """The dense array of sums, its dimensions in the order of `lax.dot_general`."""
    numbers.check(left.shape, right.shape)
    of_right = (*numbers.batch[1], *numbers.contracting[1])
    kept = numbers.rest(1, right.ndim)
    by_place = jnp.transpose(right, (*of_right, *kept))
    read = left.column((*numbers.batch[0], *numbers.contracting[0]))
    rows = by_place.at[tuple(read.T)].get(mode="fill", fill_value=0) if of_right else by_place
    terms = left.data.reshape((-1,) + (1,) * len(kept)) * rows
    if not of_right:
        terms = jnp.broadcast_to(terms, (left.data.shape[0], *rows.shape))
    dims = (*numbers.batch[0], *numbers.rest(0, len(left.shape)))
    sizes = tuple(left.shape[d] for d in dims)
    if not dims:
        return jnp.where(left.inside().reshape((-1,) + (1,) * len(kept)), terms, 0).sum(axis=0)
    flat = jnp.ravel_multi_index(tuple(left.column(dims).T), sizes, mode="clip")
    flat = jnp.where(left.inside(), flat, prod(sizes))  # which no segment has
    return segment_sum(terms, flat, prod(sizes)).reshape(*sizes, *terms.shape[1:])


def with_sparse(left: Places, right: Places, numbers: Contraction) -> Places:
    """The sums as a list of values, one for each pair of values of the two: those that don't meet are padding."""
    numbers.check(left.shape, right.shape)
    met = [side.column((*numbers.batch[i], *numbers.contracting[i])) for i, side in enumerate((left, right))]
    meet = (met[0][:, None] == met[1][None]).all(axis=-1) & left.inside()[:, None] & right.inside()[None]
    of_left = (*numbers.batch[0], *numbers.rest(0, len(left.shape)))
    of_right = numbers.rest(1, len(right.shape))
    shape = (*(left.shape[d] for d in of_left), *(right.shape[d] for d in of_right))
    pairs = (left.data.shape[0], right.data.shape[0])
    places = jnp.concatenate(
        [
            jnp.broadcast_to(left.column(of_left)[:, None], (*pairs, len(of_left))),
            jnp.broadcast_to(right.column(of_right)[None], (*pairs, len(of_right))),
        ],
        axis=-1,
    )
    places = jnp.where(meet[..., None], places, np.array(shape, places.dtype))
    terms = left.data[:, None] * right.data[None]
    data = jnp.where(meet.reshape(*pairs, *(1,) * (terms.ndim - 2)), terms, 0)
    return Places(data.reshape(prod(pairs), *terms.shape[2:]), places.reshape(prod(pairs), len(shape)), shape)
