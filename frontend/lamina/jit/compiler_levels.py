"""Words that say how hard to compile and where calls are written out."""

from __future__ import annotations

import enum


class CompilerEffortLevel(enum.Enum):
    """How much time the compiler may take: names for programs that pass such a level on.

    lamina's compiler chooses by what each kernel has to do.
    """

    UNKNOWN = 0
    O0 = 9
    O1 = 19
    O2 = 29
    O3 = 39

    @classmethod
    def _missing_(cls, value: object) -> CompilerEffortLevel | None:
        """The level of a name, such as "O2"."""
        return cls.__members__.get(value) if isinstance(value, str) else None


class Inline(enum.Enum):
    """When a jitted function that another one calls is written out in it: `jit(f, inline=...)`.

    JAX_EARLY   while the caller is traced, so that its jaxpr holds no call.
    JAX_LATE, XLA_EARLY, XLA_LATE, AUTO  the compiler writes out every call, whichever is said.
    """

    JAX_EARLY = "jax_early"
    JAX_LATE = "jax_late"
    XLA_EARLY = "xla_early"
    XLA_LATE = "xla_late"
    AUTO = "auto"
