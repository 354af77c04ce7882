"""Functions with batching rules of their own."""

from lamina.control_flow.custom_vmap import custom_vmap as custom_vmap
from lamina.control_flow.custom_vmap import sequential_vmap as sequential_vmap

__all__ = ["custom_vmap", "sequential_vmap"]
