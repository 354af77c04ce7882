"""What is fed with damaged input, and what it may answer: a result, or an error of its own."""

from __future__ import annotations

import json
import os
import random
import struct
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from mutations import damaged_bytes, damaged_json, damaged_text

import lamina
from lamina.backends.compile import compile_module
from lamina.dialects.context import parse
from lamina.dialects.parse_error import ParseError
from lamina.dialects.serialize import to_bytecode, to_portable_artifact
from lamina.passes.framework.base import CompileError, PassError
from lamina.runtime import artifact as artifacts
from lamina.runtime.artifact import Artifact, ArtifactError
from lamina.runtime.executable import LoadError, load
from lamina.runtime.store import StoreWarning, default_store

CORPUS = Path(__file__).parent / "corpus"
Case = Callable[[], str]
"""Does one thing with damaged input, and says how it ended."""
Maker = Callable[[random.Random], tuple[bytes, Case]]
"""Makes a case, and what is kept of it where it goes wrong."""


def programs() -> list[str]:
    """The texts that are damaged."""
    return [path.read_text() for path in sorted(CORPUS.glob("*.mlir"))]


def text() -> Maker:
    """Programs as text, compiled."""
    known = programs()

    def make(draw: random.Random) -> tuple[bytes, Case]:
        damaged = damaged_text(draw.choice(known), draw.choice(known), draw)
        return damaged.encode(errors="replace"), lambda found=damaged: _compiled(found)

    return make


def bytecode() -> Maker:
    """Programs as bytecode and as portable artifacts, compiled."""
    modules = [parse(program) for program in programs()]
    known = [to_bytecode(module) for module in modules]
    known += [to_portable_artifact(module) for module in modules]

    def make(draw: random.Random) -> tuple[bytes, Case]:
        damaged = damaged_bytes(draw.choice(known), draw, keep=4)
        return damaged, lambda found=damaged: _compiled(found)

    return make


def artifact() -> Maker:
    """Compiled programs, loaded: damaged anywhere, or in their heads under a right checksum. (What is in
    their machine code nobody can look over.)"""
    known = [compile_module(parse(p)).artifact for p in programs() if "?x" not in p]

    def make(draw: random.Random) -> tuple[bytes, Case]:
        whole = draw.choice(known)
        if draw.random() < 0.3:
            damaged = damaged_bytes(whole.to_bytes(), draw)
        else:
            damaged = _under_a_checksum(whole, draw)
        return damaged, lambda found=damaged: _loaded(found)

    return make


def store() -> Maker:
    """A program whose entries in the store are damaged, run."""
    directory = Path(os.environ["LAMINA_CACHE_DIR"])

    def make(draw: random.Random) -> tuple[bytes, Case]:
        os.environ["LAMINA_CACHE"] = "1"
        _run_stored(0)
        entries = sorted(path for path in directory.glob("*/??/*") if path.is_file())
        path, kind = draw.choice(entries), draw.randrange(8)
        content = damaged_bytes(path.read_bytes(), draw)
        return f"{path} {kind} ".encode() + content, lambda p=path, k=kind, c=content: _stored(p, k, c)

    return make


TARGETS = {found.__name__: found for found in (text, bytecode, artifact, store)}


def _compiled(source: str | bytes) -> str:
    try:
        lamina.compile_stablehlo(source)
    except ParseError as error:
        down = "brought down" in str(error)
        return "reader brought down" if down else "not parsed"
    except PassError:
        return "failed in a pass"
    except (CompileError, NotImplementedError, MemoryError, ValueError) as error:
        return f"refused ({type(error).__name__})"
    return "compiled"


def _under_a_checksum(whole: Artifact, draw: random.Random) -> bytes:
    index = {name: len(data) for name, data in whole.objects.items()}
    head = damaged_json({"manifest": whole.manifest, "objects": index}, draw)
    data = json.dumps(head).encode()
    if draw.random() < 0.2:
        data = damaged_bytes(data, draw)
    body = struct.pack("<Q", len(data)) + data + b"".join(whole.objects.values()) + whole.source
    return struct.pack("<8sQ32s", artifacts._MAGIC, len(body), artifacts._checksum(body)) + body


def _loaded(data: bytes) -> str:
    try:
        load(Artifact.from_bytes(data))
    except (ArtifactError, LoadError, MemoryError) as error:
        return f"refused ({type(error).__name__})"
    return "loaded"


def _run_stored(number: int) -> None:
    lamina.clear_caches()
    x = np.arange(4, dtype=np.float32)
    found = lamina.jit(lambda x: x * 2 + number)(x)
    np.testing.assert_array_equal(found, x * 2 + number)


def _stored(path: Path, kind: int, content: bytes) -> str:
    path.unlink()
    if kind == 0:
        os.mkfifo(path, 0o600)
    elif kind == 1:
        path.symlink_to("/dev/zero")
    elif kind == 2:
        path.write_bytes(content)
        path.chmod(0o666)
    elif kind == 3:
        path.mkdir()
    elif kind == 4:  # under a right checksum
        found = default_store()
        assert found is not None
        found.put(path.parent.parent.name, path.name, content[:40] + b"{}" + content[40:200])
    else:
        path.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StoreWarning)
        _run_stored(0)
    if kind == 3:
        path.rmdir()
    return "run"
