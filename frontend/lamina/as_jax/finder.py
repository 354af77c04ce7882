"""Finds for each module of JAX the one of lamina that stands for it."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType

from lamina.as_jax import private


class Finder(importlib.abc.MetaPathFinder):
    """Answers for `jax` and all below it, so that an installed JAX is never loaded."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != "jax" and not fullname.startswith("jax."):
            return None
        return importlib.util.spec_from_loader(fullname, _Loader())


class _Loader(importlib.abc.Loader):
    """Gives a module that exists under another name, as it is."""

    def __init__(self) -> None:
        self.spec: importlib.machinery.ModuleSpec | None = None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = private.module(spec.name) or _import(spec.name)
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec  # the import system has put its own there


def _import(name: str) -> ModuleType:
    if name == "jax":
        return importlib.import_module("lamina.as_jax.jax")
    here = "lamina" + name[len("jax") :]
    try:
        return importlib.import_module(here)
    except ModuleNotFoundError as error:
        if error.name is None or not here.startswith(error.name):
            raise  # something else is missing, below it
    # Some of JAX's modules are attributes of packages here.
    parent, _, last = here.rpartition(".")
    found = getattr(sys.modules.get(parent), last, None)
    if isinstance(found, ModuleType):
        return found
    raise ModuleNotFoundError(f"No module named {name!r}: lamina has no {here}", name=name)
