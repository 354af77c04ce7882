"""Where JAX keeps the constructors of IFRT programs, for runtimes on other machines.

lamina has no such runtime: each name of `ifrt_programs` raises AttributeError, which says so.
"""

from __future__ import annotations

from typing import Any

from lamina.core.library import library

__all__ = ["ifrt_programs"]


class _None:
    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"ifrt_programs.{name}: there is no IFRT runtime here; compile by "
            f"{library}.jit(f).lower(x).compile()"
        )


ifrt_programs = _None()
