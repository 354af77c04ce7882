"""Arrays kept in files: see pytree_serialization."""

from lamina.experimental.array_serialization import pytree_serialization as pytree_serialization
