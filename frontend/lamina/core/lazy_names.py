"""Names of a package that are loaded when they are first used, so that a program pays for what it names."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Collection, Iterable, Mapping

from lamina.core.library import library


def lazy_names(
    package: str, modules: Collection[str], homes: Mapping[str, Iterable[str]]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package (PEP 562) whose modules and names are loaded by need.

    package  its `__name__`.
    modules  submodules that are attributes of it.
    homes    a module of lamina, by its full name, to the names that the package has from it. None of them may
             be the name of a submodule that other modules load: loading it would hide the name.

    A name that is neither raises AttributeError. What was found is kept as an attribute of the package.

        __getattr__, __dir__ = lazy_names(__name__, {"fft"}, {"lamina.numpy.grids": ("indices", "ix_")})
    """
    home_of = {name: home for home, names in homes.items() for name in names}
    shown = package.partition(".")[2]

    def find(name: str) -> object:
        if name in modules:
            return importlib.import_module(f"{package}.{name}")
        if name not in home_of:
            called = f"{library}.{shown}" if shown else f"{library}"
            raise AttributeError(f"module {called!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(home_of[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules, *home_of})

    return find, listed
