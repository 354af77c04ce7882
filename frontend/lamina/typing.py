"""Types for annotations: what arrays are, and what functions take for arrays."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from lamina.core.array_class import Array as Array


@runtime_checkable
class SupportsDType(Protocol):
    """What has a dtype."""

    @property
    def dtype(self) -> np.dtype:
        """The dtype."""


# What lamina.numpy's functions take for arrays; tracers are Arrays to isinstance.
ArrayLike = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
DTypeLike = str | type[Any] | np.dtype | SupportsDType

__all__ = ["ArrayLike", "DTypeLike"]
