"""Checks that imports go down the layers only: frontend, dialects and passes, backends, runtime.

    python tools/check_layers.py          # prints each breach as file:line, exits with 1

Reads the syntax tree of every module, so that imports inside functions count too.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent

# Folders of the house and what they are called when imported.
PACKAGES = {
    "frontend/lamina": "lamina",
    "dialects": "lamina.dialects",
    "passes": "lamina.passes",
    "backends": "lamina.backends",
    "runtime": "lamina.runtime",
    "tools": "lamina.tools",
}

FOUNDATION = ("lamina.records", "lamina.forks", "lamina.process_setting")
"""What stands on nothing of lamina's: every layer may import it."""
MLIR, LLVM = "torch_mlir", "llvmlite"
NATIVE = "lamina.runtime._runtime"


@dataclass(frozen=True)
class Layer:
    """The modules below `prefixes` ("=name": that module alone), and what they may import."""

    name: str
    prefixes: tuple[str, ...]
    may: tuple[str, ...]  # prefixes inside lamina
    but_not: tuple[str, ...] = ()  # exceptions to `may`
    foreign: tuple[str, ...] = ()  # of MLIR and LLVM, what it may import


# The first layer that holds a module is its layer. One table, as in docs/architecture.md.
LAYERS = (
    Layer("tools", ("lamina.tools",), ("lamina",), foreign=(MLIR, LLVM)),
    # A door: `lamina.lax` shows users what lies in lax and in control_flow above it.
    # (And with_sharding_constraint, which is part of lamina.sharding.)
    Layer("door", ("=lamina.lax",), ("lamina.lax", "lamina.control_flow", "lamina.sharding", "lamina.core.lazy_names")),
    Layer("runtime", ("lamina.runtime",), ("lamina.runtime",), foreign=(LLVM,)),
    Layer("vendors", ("lamina.dialects.vendors",), ("lamina.dialects",), foreign=(MLIR,)),
    Layer("dialects", ("lamina.dialects",), ("lamina.dialects",)),
    Layer("passes", ("lamina.passes",), ("lamina.passes", "lamina.dialects")),
    Layer(
        "backends",
        ("lamina.backends",),
        ("lamina.backends", "lamina.passes", "lamina.dialects", "lamina.runtime"),
        but_not=(NATIVE,),
        foreign=(LLVM,),
    ),
    Layer(
        "core",
        ("lamina.core", "lamina.errors", "lamina.config"),
        ("lamina.core", "lamina.errors", "lamina.config"),
    ),
    Layer(
        "special functions",
        ("lamina.lax.special",),
        (
            "lamina.lax",
            "lamina.control_flow",
            "lamina.interpreters",
            "lamina.core",
            "lamina.errors",
            "lamina.config",
        ),
    ),
    Layer(
        "lax",
        ("lamina.lax",),
        ("lamina.lax", "lamina.core", "lamina.errors", "lamina.config", "lamina.dialects"),
        but_not=("lamina.dialects.vendors", "lamina.lax.special"),
    ),
    Layer(
        "interpreters",
        ("lamina.interpreters", "lamina.control_flow"),
        (
            "lamina.interpreters",
            "lamina.control_flow",
            "lamina.lax",
            "lamina.core",
            "lamina.errors",
            "lamina.config",
            "lamina.dialects",
        ),
    ),
    Layer("surface", ("lamina",), ("lamina",), but_not=("lamina.tools",)),
)


@dataclass(frozen=True)
class Breach:
    """An import that its module must not make."""

    path: Path
    line: int
    module: str
    imported: str
    layer: str

    def __str__(self) -> str:
        where = f"{self.path.relative_to(REPO)}:{self.line}"
        return f"{where}: {self.module} (layer {self.layer}) must not import {self.imported}"


def modules() -> Iterator[tuple[str, Path]]:
    """(name, file) of every module of the package."""
    for folder, package in PACKAGES.items():
        for path in sorted((REPO / folder).rglob("*.py")):
            if folder == "frontend/lamina" and _is_linked(path):
                continue
            parts = list(path.relative_to(REPO / folder).with_suffix("").parts)
            if parts[-1] == "__init__":
                parts.pop()
            yield ".".join([package, *parts]), path


def _is_linked(path: Path) -> bool:
    return not path.resolve().is_relative_to(REPO / "frontend")


def imports(module: str, path: Path) -> Iterator[tuple[int, str]]:
    """(line, name) of each import; `from a import b` counts as a.b where that is a module."""
    known = _module_names()
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(module, path, node)
            for alias in node.names:
                full = f"{base}.{alias.name}"
                yield node.lineno, full if full in known or full == NATIVE else base


def _absolute(module: str, path: Path, node: ast.ImportFrom) -> str:
    if node.level == 0:
        return node.module or ""
    package = module.split(".")
    if path.name != "__init__.py":
        package.pop()
    package = package[: len(package) - node.level + 1]
    return ".".join([*package, *(node.module or "").split(".")]).rstrip(".")


_names: set[str] = set()


def _module_names() -> set[str]:
    if not _names:
        _names.update(name for name, _ in modules())
    return _names


def layer_of(module: str) -> Layer:
    """The layer a module of lamina belongs to."""
    return next(layer for layer in LAYERS if _within(module, layer.prefixes))


def allowed(layer: Layer, imported: str) -> bool:
    """Whether modules of `layer` may import the module `imported`."""
    if _within(imported, (MLIR, LLVM)):
        return _within(imported, layer.foreign)
    if not _within(imported, ("lamina",)):
        return True
    if _within(imported, FOUNDATION):
        return True
    return _within(imported, layer.may) and not _within(imported, layer.but_not)


def breaches() -> list[Breach]:
    """Every import in the repository that goes up, or around, the layers."""
    return [
        Breach(path, line, module, imported, layer_of(module).name)
        for module, path in modules()
        for line, imported in imports(module, path)
        if not allowed(layer_of(module), imported)
    ]


def _within(module: str, prefixes: tuple[str, ...]) -> bool:
    return any(
        module == prefix.removeprefix("=") or module.startswith(prefix + ".") for prefix in prefixes
    )


def main() -> int:
    """Prints the breaches; the exit code says whether there are any."""
    found = breaches()
    for breach in found:
        print(breach)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
