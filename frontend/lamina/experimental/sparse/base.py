"""JAXSparse: what sparse arrays of every format have; SparseMatrix: what those of matrices alone have."""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina import numpy as jnp


class SparseEfficiencyError(ValueError):
    """An operation on sparse arrays that would take as much memory as dense ones."""


class SparseEfficiencyWarning(UserWarning):
    """The same as a warning; for the filters of programs: nothing here warns of it."""


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """That NVIDIA's library can't do something; for the filters of programs: it is not used here."""


class JAXSparse(abc.ABC):
    """A sparse array. Formats are BCOO (values and their indices) and BCSR (compressed rows), and of
    matrices COO, CSR and CSC."""

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
    def _with(self, data: Any) -> JAXSparse:
        """Other values at the same places."""

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
        try:
            parts = [f"{self.dtype.name}{list(self.shape)}", f"nse={self.nse}"]
            parts += [f"{name}={n}" for name in ("n_batch", "n_dense") if (n := getattr(self, name, 0))]
        except (AttributeError, IndexError):  # other arrays were put in their place
            parts = ["<invalid>"]
        return f"{type(self).__name__}({', '.join(parts)})"


def is_sparse(x: Any) -> bool:
    """Whether a value is a sparse array of any format."""
    return isinstance(x, JAXSparse)


class SparseMatrix(JAXSparse):
    """A sparse matrix that does what it is asked as a BCOO."""

    @property
    def nse(self) -> int:
        """How many values are kept."""
        return self.data.shape[0]

    @abc.abstractmethod
    def to_bcoo(self) -> Any:
        """The same as values with their indices; padding is beyond the shape."""

    @abc.abstractmethod
    def tree_flatten(self) -> tuple[tuple[Any, ...], Any]:
        """The arrays, `data` the first, and what else there is."""

    @classmethod
    @abc.abstractmethod
    def tree_unflatten(cls, rest: Any, children: Any) -> Any:
        """The inverse, for any values."""

    def _with(self, data: Any) -> Any:
        (_, *others), rest = self.tree_flatten()
        return type(self).tree_unflatten(rest, (data, *others))

    def _check_axes(self, axes: Sequence[int] | None) -> None:
        if axes is not None and tuple(axes) != (1, 0):
            name = type(self).__name__
            raise NotImplementedError(f"[{name}.transpose] axes must be (1, 0), got {tuple(axes)}")

    def todense(self) -> Any:
        """The matrix with zeros elsewhere."""
        return self.to_bcoo().todense()

    def times(self, other: Any, ndim: int | None = None, transpose: bool = False) -> Any:
        """The product with a dense vector or matrix, and of so many dimensions, where that is given."""
        name = type(self).__name__
        if isinstance(other, JAXSparse):
            raise NotImplementedError(
                f"matmul between two sparse matrices, of which one is {name}: take to_bcoo() of both"
            )
        other = jnp.asarray(other)
        if other.ndim not in ((1, 2) if ndim is None else (ndim,)):
            raise NotImplementedError(f"matmul of {name} with an array of shape {other.shape}")
        mat = self.to_bcoo()
        return (mat.T if transpose else mat) @ other

    def __matmul__(self, other: Any) -> Any:
        return self.times(other)

    def __rmatmul__(self, other: Any) -> Any:
        return jnp.asarray(other) @ self.to_bcoo()

    def __neg__(self) -> Any:
        return self._with(-self.data)

    def __mul__(self, other: Any) -> Any:
        if np.ndim(other):
            raise NotImplementedError(
                f"{type(self).__name__} times an array of shape {np.shape(other)}: take to_bcoo() of it"
            )
        return self._with(self.data * other)

    __rmul__ = __mul__
