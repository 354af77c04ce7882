"""Names that JAX keeps under jax.experimental."""

from lamina.callbacks.io import io_callback as io_callback
from lamina.experimental import checkify as checkify
