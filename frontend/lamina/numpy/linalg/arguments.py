"""What the functions of linear algebra ask of their arguments."""

from __future__ import annotations

from typing import Any

from lamina.numpy.creation import asarray
from lamina.numpy.promotion import Array, ArrayLike, check_arraylike, promote_inexact


def matrices(name: str, *arrays: ArrayLike) -> list[Array]:
    """Arrays of one floating or complex dtype. Raises TypeError for what is no array."""
    check_arraylike(f"jnp.linalg.{name}", *arrays)
    return [asarray(x) for x in promote_inexact(*arrays)]


def check_square(name: str, a: Any) -> None:
    """Raises ValueError unless a holds square matrices."""
    if len(a.shape) < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"Argument to {name} must have shape [..., n, n], got {a.shape}.")


def check_rank(name: str, a: Any) -> None:
    """Raises TypeError unless a holds matrices."""
    if len(a.shape) < 2:
        raise TypeError(f"Input 0 to {name} must have rank at least 2, but got shape={a.shape}")
