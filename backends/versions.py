"""What else decides the code that comes out: the versions of lamina and of what it stands on."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
from pathlib import Path

# Everything that takes part in compiling; the frontend's part is in the StableHLO it hands over.
_COMPILER = ("dialects", "passes", "backends")
_VENDORS = ("llvmlite", "torch_mlir")


@functools.cache
def versions() -> dict[str, str]:
    """Name -> version of lamina, MLIR and LLVM, and `source`: a digest of the compiler's files.

    The digest makes a changed checkout, or another build of one version, a different compiler.
    """
    from importlib.metadata import PackageNotFoundError, version  # takes longer than all else here

    found = {"source": _source_digest()}
    for package in ("lamina", "torch-mlir", "llvmlite"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # a source tree that was never installed
            found[package] = "unknown"
    return found


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


def _source_digest() -> str:
    digest = hashlib.sha256()
    root = Path(__file__).absolute().parent.parent  # of `lamina`, whose parts may be linked
    for part in _COMPILER:
        for path in sorted((root / part).resolve().rglob("*.py")):
            stat = path.stat()
            digest.update(f"{path.name} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]
