"""Types for annotations: what arrays are, and what functions take for arrays."""

from __future__ import annotations

from lamina.core.array_class import Array as Array
from lamina.core.array_likes import ArrayLike as ArrayLike
from lamina.core.array_likes import DTypeLike as DTypeLike
from lamina.core.array_likes import SupportsDType as SupportsDType

__all__ = ["ArrayLike", "DTypeLike"]
