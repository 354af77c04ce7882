"""Moving arrays in and out. There is one device so far: this machine's CPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina import runtime
from lamina.array import Array
from lamina.core import tree
from lamina.core.trace import Tracer


def device_put(x: Any, device: Any = None) -> Any:
    """A pytree with each leaf an Array. Raises TypeError for leaves that are no arrays."""
    return tree.map(lambda leaf: leaf if isinstance(leaf, Tracer) else runtime.to_array(leaf), x)


def device_get(x: Any) -> Any:
    """A pytree with each Array as a NumPy array (waits until it is there)."""
    return tree.map(lambda leaf: np.asarray(leaf) if isinstance(leaf, Array) else leaf, x)


def block_until_ready(x: Any) -> Any:
    """Waits for every Array in a pytree; gives the pytree. Errors of the computation surface here."""
    for leaf in tree.leaves(x):
        if isinstance(leaf, Array):
            leaf.block_until_ready()
    return x
