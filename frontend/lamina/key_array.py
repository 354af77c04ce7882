"""Arrays of random keys: values of their own type, which hide the words that they are made of."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from lamina import runtime
from lamina.array import ArrayImpl, from_numpy
from lamina.core import dtypes
from lamina.core.array_class import Array
from lamina.core.avals import ShapedArray
from lamina.core.library import library
from lamina.core.trace import physical


class KeyArray(Array):
    """An immutable array of keys of one generator, that of its dtype.

    words   uint32[..., n]: what random functions compute with.
    packed  one number for each key: the same, as compiled programs take and give keys.
    """

    __slots__ = ("__weakref__", "_packed", "_words", "dtype")

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: math.prod(self.shape))
    itemsize = property(lambda self: self.dtype.itemsize)
    nbytes = property(lambda self: self.dtype.itemsize * self.size)
    aval = property(lambda self: ShapedArray(self.shape, self.dtype, sharding=self.placement))
    weak_type = False
    if TYPE_CHECKING:
        dtype: Any

    def __init__(
        self,
        words: ArrayImpl | None = None,
        *,
        packed: ArrayImpl | None = None,
        dtype: dtypes.KeyDType = dtypes.KEY,
    ) -> None:
        self._words, self._packed = words, packed
        self.dtype = dtype

    @property
    def words(self) -> ArrayImpl:
        if self._words is None:
            assert self._packed is not None
            view = self._packed.numpy_view()
            self._words = from_numpy(view.reshape(*view.shape, 1).view(np.uint32))
            if self._packed.committed:
                self._words = runtime.place_array(self._words, self._packed.placement)
        return self._words

    @property
    def packed(self) -> ArrayImpl:
        if self._packed is None:
            assert self._words is not None
            view = np.ascontiguousarray(self._words.numpy_view())
            self._packed = from_numpy(view.view(self.dtype.physical).reshape(view.shape[:-1]))
            if self._words.committed:
                self._packed = runtime.place_array(self._packed, self.placement)
        return self._packed

    @property
    def shape(self) -> tuple[int, ...]:
        if self._packed is not None:
            return tuple(self._packed.shape)
        assert self._words is not None
        return tuple(self._words.shape[:-1])

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator[KeyArray]:
        if not self.shape:
            raise TypeError("iteration over a 0-d key array")
        return (KeyArray(words, dtype=self.dtype) for words in self.words)

    __hash__ = None  # type: ignore[assignment]

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(
            f"{library.name} array with PRNGKey dtype cannot be converted to a NumPy array. Use "
            f"{library}.random.key_data(arr) if you wish to extract the underlying integer array."
        )

    def __repr__(self) -> str:
        return f"Array({self.shape}, dtype={self.dtype.name}) overlaying:\n{self.words}"

    # --- Placement: that of the array that holds the keys -------------------------------------------
    @property
    def _held(self) -> ArrayImpl:
        return self.packed if self._words is None else self._words

    @property
    def placement(self) -> Any:
        """How somebody placed the keys; None where nobody did."""
        place = self._held.placement
        if self._packed is None and len(getattr(place, "spec", ())) > len(self.shape):
            return place.update(spec=place.spec.with_entries(tuple(place.spec)[:-1]))  # without that of the words
        return place

    @property
    def sharding(self) -> Any:
        """Where the keys lie."""
        return self._held.sharding if self.placement is None else self.placement

    device = property(lambda self: self._held.device)
    committed = property(lambda self: self._held.committed)
    is_fully_addressable = property(lambda self: self._held.is_fully_addressable)
    is_fully_replicated = property(lambda self: self._held.is_fully_replicated)

    def devices(self) -> Any:
        """The devices that hold a part of the array."""
        return self._held.devices()

    def is_deleted(self) -> bool:
        return self._held.is_deleted()

    def delete(self) -> None:
        """Frees the memory; the array can't be used afterwards."""
        for held in (self._words, self._packed):
            if held is not None:
                held.delete()

    def block_until_ready(self) -> KeyArray:
        self._held.block_until_ready()
        return self

    def copy(self) -> KeyArray:
        """An array with equal keys in memory of its own."""
        return KeyArray(self.words.copy(), dtype=self.dtype)

    def on_device_size_in_bytes(self) -> int:
        """Bytes of the array's memory."""
        return self._held.on_device_size_in_bytes()

    def unsafe_buffer_pointer(self) -> int:
        """The address of the array's memory."""
        return self._held.unsafe_buffer_pointer()

    def copy_to_host_async(self) -> None:
        """As of an array."""
        self._held.copy_to_host_async()


class PhysicalEntry:
    """A program that reads keys, or nothing (float0): runs `entry` on what holds them."""

    __slots__ = ("entry",)

    def __init__(self, entry: Any) -> None:
        self.entry = entry

    def __call__(self, leaves: Sequence[Any]) -> Any:
        return self.entry([physical(x) for x in leaves])


def of_fast_path(entry: Any) -> Any:
    """What the fast path runs for an entry: it reads what holds the keys by itself."""
    return entry.entry if isinstance(entry, PhysicalEntry) else entry


def as_logical(leaves: Sequence[Any], logical: Mapping[int, Any]) -> list[Any]:
    """The results of a program; those whose position `logical` has, as values of that dtype."""

    def one(x: Any, dtype: Any) -> Any:
        if dtype is None:
            return x
        return KeyArray(packed=x, dtype=dtype) if dtypes.is_key(dtype) else np.zeros(x.shape, dtype)

    return [one(x, logical.get(i)) for i, x in enumerate(leaves)]
