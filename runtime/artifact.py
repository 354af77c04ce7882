"""`Artifact`: a compiled program as data, which the store keeps and the loader makes callable.

The file is a magic word, the length and BLAKE2 checksum of what follows, the manifest as JSON, the
program as MLIR bytecode and the object files. Nothing in it is executed by reading it.
"""

from __future__ import annotations

import struct
from dataclasses import field
from typing import Any

from lamina.records import Record
from lamina.runtime.manifest import problem_of

ABI_VERSION = 2

_MAGIC = b"LAMINA\x00\x01"
_HEADER = struct.Struct("<8sQ32s")
_LENGTH = struct.Struct("<Q")


class ArtifactError(ValueError):
    """Bytes that are not an artifact, not a whole one, or one for another ABI."""


class Artifact(Record):
    """A manifest (JSON values only), the object files it talks about, by name, and the StableHLO that
    was compiled, as MLIR bytecode, from which its forms are shown.

    The keys that the loader reads, and `manifest.problem_of` checks: `abi_version`, `name`, `entry`
    (symbol), `inputs` and `outputs` (lists of {"dtype", "shape"}; an output may have "alias_of":
    index of a donated input), `arena_bytes`, `imports` (symbols from outside), `target` (what it
    runs on), `cost` ({"flops", "bytes accessed", "transcendentals"}).
    """

    manifest: dict[str, Any]
    objects: dict[str, bytes] = field(default_factory=dict)
    source: bytes = b""

    def to_bytes(self) -> bytes:
        """The artifact as one block; `from_bytes` gives an equal one back."""
        body = self._body()
        return _HEADER.pack(_MAGIC, len(body), _checksum(body)) + body

    def digest(self) -> bytes:
        """The same for equal artifacts, different for others."""
        return _checksum(self._body())

    def _body(self) -> bytes:
        import json

        index = {name: len(data) for name, data in self.objects.items()}
        head = json.dumps({"manifest": self.manifest, "objects": index}).encode()
        return b"".join([_LENGTH.pack(len(head)), head, *self.objects.values(), self.source])

    @staticmethod
    def from_bytes(data: bytes) -> Artifact:
        """Reads what `to_bytes` wrote.

        Raises:
            ArtifactError: the bytes are damaged, cut off, malformed, or of another ABI version.
        """
        import json

        if len(data) < _HEADER.size:
            raise ArtifactError("not an artifact: it is shorter than the header of one")
        magic, length, checksum = _HEADER.unpack_from(data)
        body = memoryview(data)[_HEADER.size :]
        if magic != _MAGIC:
            raise ArtifactError("not an artifact, or one of another format version")
        if length != len(body) or checksum != _checksum(body):
            raise ArtifactError("the artifact is damaged: its checksum does not match")
        try:
            (head_length,) = _LENGTH.unpack_from(body)
            offset = _LENGTH.size + head_length
            head = json.loads(bytes(body[_LENGTH.size : offset]))
            manifest, sizes = head["manifest"], dict(head["objects"])
            if not all(type(size) is int and size >= 0 for size in sizes.values()):
                raise ValueError("objects of no size")
            if offset + sum(sizes.values()) > len(body):
                raise ValueError("objects reach beyond its end")
        except (struct.error, ValueError, TypeError, KeyError, RecursionError) as error:
            raise ArtifactError(f"the artifact is malformed: {error}") from None
        abi = manifest.get("abi_version") if isinstance(manifest, dict) else None
        if abi != ABI_VERSION:
            raise ArtifactError(f"the artifact is for ABI {abi}, this is {ABI_VERSION}")
        if (problem := problem_of(manifest)) is not None:
            raise ArtifactError(f"the artifact is malformed: {problem}")
        objects = {}
        for name, size in sizes.items():
            objects[name] = bytes(body[offset : offset + size])
            offset += size
        return Artifact(manifest, objects, bytes(body[offset:]))


def _checksum(data: bytes | memoryview) -> bytes:
    import hashlib

    return hashlib.blake2b(data, digest_size=32).digest()
