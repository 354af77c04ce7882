"""What the library calls itself in messages: lamina; or jax, in programs that import it as that.

Messages name functions and modules as the user does who reads them: `f"use {library}.numpy.where"`.
In prose it is `library.name`, and the environment variable of a setting `library.variable(...)`.
"""

from __future__ import annotations


class Library:
    """The names of the library; `str` is the one it is imported by."""

    def __init__(self) -> None:
        self.module, self.name, self.prefix = "lamina", "lamina", "LAMINA_"

    def call(self, module: str, name: str, prefix: str) -> None:
        """Sets what it is imported by, its name in prose, how its environment variables begin."""
        self.module, self.name, self.prefix = module, name, prefix

    def variable(self, setting: str) -> str:
        """The environment variable of a setting."""
        return self.prefix + setting.upper()

    def __str__(self) -> str:
        return self.module


library = Library()
