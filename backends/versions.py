"""What else decides the code that comes out: the versions of lamina and of what it stands on."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

# Everything that takes part in compiling; the frontend's part is in the StableHLO it hands over.
_COMPILER = ("dialects", "passes", "backends")


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


def _source_digest() -> str:
    digest = hashlib.sha256()
    root = Path(__file__).absolute().parent.parent  # of `lamina`, whose parts may be linked
    for part in _COMPILER:
        for path in sorted((root / part).resolve().rglob("*.py")):
            stat = path.stat()
            digest.update(f"{path.name} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]
