"""Passes by name. A pass is found by its file's name below its level; there is no list to keep."""

from __future__ import annotations

import difflib
import errno
import functools
import importlib
import importlib.util
import inspect
import os
import pkgutil
import re
from pathlib import Path
from types import ModuleType

import lamina.passes
from lamina.passes.framework.base import Pass, name_of_module

_ONLY_WITH, _END = b"\n    only_with = frozenset((", b"))\n"
_loaded: dict[str, type[Pass]] = {}  # from files given by --load
_files: dict[str, Path] = {}  # of these


def find(name: str) -> type[Pass] | None:
    """The pass of this name, or None when no file of ours holds it (it may be an upstream one)."""
    if name in _loaded:
        return _loaded[name]
    module = _module_of(name)
    return None if module is None else _pass_in(importlib.import_module(module))


@functools.cache
def only_with(name: str) -> frozenset[str]:
    """The `only_with` of a pass of ours, read from its file, where it is one line: so that a pass need not
    be imported to be left out. Empty for one that is always to be run."""
    if name in _loaded:
        return frozenset()
    module = _module_of(name)
    if module is None:
        return frozenset()
    with open(_modules(name.partition("-")[0])[module], "rb", 0) as file:
        names = file.read().partition(_ONLY_WITH)[2].partition(_END)[0].decode()
    return frozenset(re.findall(r'"([\w.]+)"', names))


def like(name: str) -> list[str]:
    """Names of passes of ours that are spelt nearly so; imports none."""
    names = [name_of_module(module) for level in _levels() for module in _modules(level)]
    return difflib.get_close_matches(name, [*_loaded, *names], 3, 0.8)


def all_passes() -> dict[str, type[Pass]]:
    """Every pass by name, sorted; imports them all."""
    found = dict(_loaded)
    for level in _levels():
        for name in sorted(_modules(level)):
            held = _pass_in(importlib.import_module(name))
            if held is not None:
                found[held.name] = held
    return dict(sorted(found.items()))


def load_file(path: str | Path) -> type[Pass]:
    """The pass in a Python file from outside, from now on found by its file's name.

    Raises ValueError when the file does not hold exactly one pass.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(errno.ENOENT, "No such file", str(path))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    held = _pass_in(module)
    if held is None:
        raise ValueError(f"{path}: no subclass of lamina.passes.framework.base.Pass in it")
    name = name_of_module(path.stem)
    _loaded[name], _files[name] = held, path.absolute()
    return held


def loaded_file(name: str) -> Path | None:
    """The file that a pass was loaded from, for one from outside."""
    return _files.get(name)


def documentation(cls: type[Pass]) -> str:
    """A pass's documentation: its file's docstring."""
    return inspect.getdoc(inspect.getmodule(cls)) or inspect.getdoc(cls) or ""


@functools.cache
def _levels() -> dict[str, str]:
    """The levels with the packages that hold their passes; kernel writers have one for each target."""
    found = _packages(lamina.passes)
    kernels = importlib.import_module(found.pop("kernels"))
    return found | _packages(kernels)


def _packages(package: ModuleType) -> dict[str, str]:
    inside = pkgutil.iter_modules(package.__path__)
    return {m.name: f"{package.__name__}.{m.name}" for m in inside if m.ispkg}


@functools.cache
def _modules(level: str) -> dict[str, str]:
    """The modules below a level, in whichever of its folders, with their files."""
    package = importlib.import_module(_levels()[level])
    found = {}
    for root in package.__path__:
        for folder, _, files in os.walk(root):
            inside = os.path.relpath(folder, root).replace(os.sep, ".").strip(".")
            prefix = f"{package.__name__}.{inside}." if inside else f"{package.__name__}."
            for file in files:
                if file.endswith(".py") and file != "__init__.py":
                    found[prefix + file.removesuffix(".py")] = f"{folder}/{file}"
    return found


@functools.cache
def _module_of(name: str) -> str | None:
    """The module that a name is of; no two passes of a level have one file name (test/repo holds that)."""
    level, _, stem = name.partition("-")
    if "_" in name or level not in _levels():
        return None
    ending = f".{stem.replace('-', '_')}"
    return next((module for module in _modules(level) if module.endswith(ending)), None)


def _pass_in(module: ModuleType) -> type[Pass] | None:
    held = [
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, Pass)
        and value is not Pass
        and value.__module__ == module.__name__
    ]
    if len(held) > 1:
        names = ", ".join(cls.__name__ for cls in held)
        raise ValueError(
            f"{module.__name__} holds {len(held)} passes ({names}); one file, one pass"
        )
    return held[0] if held else None
