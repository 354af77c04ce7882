"""What functions of arrays take: for annotations."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from lamina.core.array_class import Array


@runtime_checkable
class SupportsDType(Protocol):
    """What has a dtype."""

    @property
    def dtype(self) -> np.dtype:
        """The dtype."""


# What lamina.numpy's functions take for arrays; tracers are Arrays to isinstance.
ArrayLike: TypeAlias = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
DTypeLike: TypeAlias = str | type[Any] | np.dtype | SupportsDType
