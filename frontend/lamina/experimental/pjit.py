"""`pjit`, the older name of `jit` with shardings."""

from lamina.jit import jit as pjit
from lamina.sharding.constraint import with_sharding_constraint as with_sharding_constraint

__all__ = ["pjit", "with_sharding_constraint"]
