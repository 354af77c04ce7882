"""Passes by name. A pass is found by its path; there is no list to keep."""

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
from contextlib import suppress
from pathlib import Path
from types import ModuleType

import lamina.passes
from lamina.passes.base import Pass, name_of_module

_ONLY_WITH, _END = b"\n    only_with = frozenset((", b"))\n"
_loaded: dict[str, type[Pass]] = {}  # from files given by --load
_files: dict[str, Path] = {}  # of these


def find(name: str) -> type[Pass] | None:
    """The pass of this name, or None when no file of ours holds it (it may be an upstream one)."""
    if name in _loaded:
        return _loaded[name]
    level, _, stem = name.partition("-")
    module_name = f"lamina.passes.{level}.{stem.replace('-', '_')}"
    if "_" in name or level not in _levels() or module_name not in _modules(level):
        return None
    return _pass_in(importlib.import_module(module_name))


@functools.cache
def only_with(name: str) -> frozenset[str]:
    """The `only_with` of a pass of ours, read from its file, where it is one line: so that a pass need not
    be imported to be left out. Empty for one that is always to be run."""
    if name in _loaded:
        return frozenset()
    level, _, stem = name.partition("-")
    if level not in _levels():
        return frozenset()
    package = importlib.import_module(f"lamina.passes.{level}")
    for folder in package.__path__:
        with suppress(OSError), open(f"{folder}/{stem.replace('-', '_')}.py", "rb", 0) as file:
            names = file.read().partition(_ONLY_WITH)[2].partition(_END)[0].decode()
            return frozenset(re.findall(r'"([\w.]+)"', names))
    return frozenset()


def like(name: str) -> list[str]:
    """Names of passes of ours that are spelt nearly so; imports none."""
    names = [
        module.removeprefix("lamina.passes.").replace(".", "-").replace("_", "-")
        for level in _levels()
        for module in _modules(level)
    ]
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
        raise ValueError(f"{path}: no subclass of lamina.passes.base.Pass in it")
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
def _levels() -> list[str]:
    return [m.name for m in pkgutil.iter_modules(lamina.passes.__path__) if m.ispkg]


@functools.cache
def _modules(level: str) -> frozenset[str]:
    package = importlib.import_module(f"lamina.passes.{level}")
    files = (name for folder in package.__path__ for name in os.listdir(folder))
    stems = (name.removesuffix(".py") for name in files if name.endswith(".py"))
    return frozenset(f"{package.__name__}.{stem}" for stem in stems if stem != "__init__")


def _pass_in(module: ModuleType) -> type[Pass] | None:
    held = [
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, Pass)
        and value.__module__ == module.__name__
    ]
    if len(held) > 1:
        names = ", ".join(cls.__name__ for cls in held)
        raise ValueError(
            f"{module.__name__} holds {len(held)} passes ({names}); one file, one pass"
        )
    return held[0] if held else None
