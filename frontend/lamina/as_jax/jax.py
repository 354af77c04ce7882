"""What `import jax` gives: lamina, under the version of JAX whose interface it follows."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

import lamina

__version__ = "0.12.0"
__version_info__ = tuple(int(part) for part in __version__.split("."))
__path__: list[str] = []  # a package: `import jax.numpy` is the finder's business


def __getattr__(name: str) -> Any:
    if name in ("lib", "version"):  # which nobody has to import first
        return importlib.import_module(f"jax.{name}")
    found = getattr(lamina, name)
    if isinstance(found, ModuleType):  # some look for it among the modules that are imported
        sys.modules.setdefault(f"jax.{name}", found)
    return found


def __dir__() -> list[str]:
    return dir(lamina)
