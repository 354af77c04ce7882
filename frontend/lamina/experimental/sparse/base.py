"""JAXSparse: what sparse arrays of every format have."""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence
from typing import Any


class JAXSparse(abc.ABC):
    """A sparse array. Formats are BCOO (values and their indices) and BCSR (compressed rows)."""

    data: Any
    shape: tuple[int, ...]
    __hash__ = None  # type: ignore[assignment]
    __array_priority__ = 100

    dtype = property(lambda self: self.data.dtype)
    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: math.prod(self.shape))

    @property
    @abc.abstractmethod
    def nse(self) -> int:
        """How many values are kept."""

    @abc.abstractmethod
    def todense(self) -> Any:
        """The array with zeros elsewhere."""

    @abc.abstractmethod
    def transpose(self, axes: Sequence[int] | None = None) -> Any:
        """Axes in another order, by default the reverse."""

    @property
    def T(self) -> Any:
        """The axes in reverse order."""
        return self.transpose()

    def block_until_ready(self) -> JAXSparse:
        """Waits until all parts are computed; gives the array."""
        from lamina.devices import block_until_ready

        return block_until_ready(self)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        kind = f"{self.dtype.name}{list(self.shape)}"
        return f"{type(self).__name__}({kind}, nse={self.nse})"
