"""What else decides the code that comes out: the versions of lamina and of what it stands on."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

# Everything that takes part in compiling; the frontend's part is in the StableHLO it hands over.
_COMPILER = ("dialects", "passes", "backends")
_VENDORS = ("llvmlite", "torch_mlir")


@functools.cache
def versions() -> dict[str, str]:
    """Name -> version of lamina, MLIR and LLVM, and `source`: a digest of the compiler's files.

    The digest makes a changed checkout, or another build of one version, a different compiler.
    """
    root = Path(__file__).absolute().parent.parent  # of `lamina`, whose parts may be linked
    source = digest_of_files((root / part).resolve() for part in _COMPILER)
    installed = {package: _installed(package) for package in ("lamina", "torch-mlir", "llvmlite")}
    return {"source": source, **installed}


def _installed(package: str) -> str:
    """The version in the name of the folder that an installer left; "unknown" for a source tree that was
    never installed. (`importlib.metadata` reads a file in that folder, as if it were mail: 20 ms.)"""
    begin, end = f"{package.replace('-', '_')}-", ".dist-info"
    for folder in sys.path:
        with suppress(OSError):
            for name in os.listdir(folder or "."):
                if name.startswith(begin) and name.endswith(end):
                    return name.removeprefix(begin).removesuffix(end)
    return "unknown"


def digest_of_files(folders: Iterable[str | os.PathLike[str]]) -> str:
    """16 hex digits that change with every change of a Python file or library in the folders: of its
    size, or of the time when it was written."""
    digest = hashlib.blake2b(digest_size=8)
    for root in folders:
        for folder, names, files in os.walk(root):
            names[:] = sorted(name for name in names if name not in ("__pycache__", "src"))
            for name in sorted(files):
                if name.endswith((".py", ".so")):
                    digest.update(f"{folder} {name} {_stamp(f'{folder}/{name}')}\n".encode())
    return digest.hexdigest()


def vendor_builds() -> list[str]:
    """What tells one build of LLVM and of MLIR from another, without importing them: the folders
    beside their packages whose names hold the versions, with the size and the time of each one's list
    of files."""
    found = []
    for package in _VENDORS:
        spec = importlib.util.find_spec(package)
        for folder in (spec and spec.submodule_search_locations) or ():
            beside = os.path.dirname(folder)
            for name in sorted(os.listdir(beside)):
                if name.startswith(f"{package}-"):
                    found.append(f"{beside}/{name} {_stamp(f'{beside}/{name}/RECORD')}")
    return found


def _stamp(path: str) -> str:
    try:
        status = os.stat(path)
    except OSError:
        return ""
    return f"{status.st_size} {status.st_mtime_ns}"
