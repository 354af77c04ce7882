"""`Store`: compiled programs on disk, found again by what they were made from.

One file an entry, `<dir>/<kind>/<2 hex>/<key>`. A file is complete or absent: it is written under
a temporary name and renamed, so that readers in other processes, a crash or kill -9 never see a
part of one. What is damaged, foreign or of another format is treated as absent. The store is a
cache: nothing it meets on the disk is an error to its caller; it warns once and goes on without.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import struct
import tempfile
import threading
import time
import warnings
from pathlib import Path

_MAGIC = b"LAMSTORE"
_HEADER = struct.Struct("<8sQ32s")
_TEMPORARY = ".partial-"
_STALE_SECONDS = 3600.0  # a temporary file this old was left by a process that died
_KEY = re.compile(r"[A-Za-z0-9_.-]{3,128}")

DEFAULT_MAX_BYTES = 2 << 30


class StoreWarning(UserWarning):
    """The disk store cannot be used as it should; results are right, but not kept."""


class Store:
    """Entries of bytes by (kind, key), bounded in bytes, least recently used dropped first.

    kind and key are short names without a slash; the key is usually a hash of the content's source.
    Safe under threads and processes.
    """

    def __init__(self, directory: str | os.PathLike[str], max_bytes: int = DEFAULT_MAX_BYTES):
        self.directory = Path(directory)
        self.max_bytes = max_bytes
        self._lock = threading.Lock()
        self._warned: set[str] = set()
        self._written = 0
        self._checked = False
        self._usable = True

    def get(self, kind: str, key: str) -> bytes | None:
        """The bytes that `put` stored, or None. Counts as a use of the entry."""
        path = self._path(kind, key)
        if not self._prepare(create=False):
            return None
        try:
            data = self._read(path)
        except FileNotFoundError:
            return None
        except (OSError, _BadEntry) as error:
            self._warn("entry", f"ignores the entry {path}: {error}")
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return data

    def put(self, kind: str, key: str, data: bytes) -> bool:
        """Stores bytes, replacing what was there. False where the disk did not take them."""
        path = self._path(kind, key)
        if _HEADER.size + len(data) > self.max_bytes or not self._prepare(create=True):
            return False
        header = _HEADER.pack(_MAGIC, len(data), _checksum(kind, key, data))
        try:
            for folder in (path.parent.parent, path.parent):
                folder.mkdir(mode=0o700, exist_ok=True)
            _write(path, header + data)
        except OSError as error:
            self._warn("write", f"cannot write to {self.directory}: {error}")
            return False
        self._make_room(len(header) + len(data))
        return True

    def clear(self) -> None:
        """Removes every entry."""
        for path, _, _ in self._entries():
            _remove(path)

    def size(self) -> int:
        """Bytes of all entries."""
        return sum(size for _, size, _ in self._entries())

    # --- The directory ---------------------------------------------------------------------------

    def _path(self, kind: str, key: str) -> Path:
        if not _KEY.fullmatch(key) or not _KEY.fullmatch(kind):
            raise ValueError(f"not a name for a store's entry: {kind!r} {key!r}")
        return self.directory / kind / key[:2] / key

    def _prepare(self, create: bool) -> bool:
        """Whether the directory is there and ours alone. Asked once."""
        with self._lock:
            if self._checked:
                return self._usable
            try:
                if create:
                    self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
                status = self.directory.stat()
            except FileNotFoundError:
                return False  # nothing stored yet
            except OSError as error:
                self._checked, self._usable = True, False
                self._warn("directory", f"cannot use {self.directory}: {error}")
                return False
            self._checked = True
            if status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                self._usable = False
                self._warn(
                    "directory",
                    f"does not use {self.directory}: others could write to it "
                    "(it must belong to you, with mode 0700)",
                )
            return self._usable

    # --- Entries ---------------------------------------------------------------------------------

    def _read(self, path: Path) -> bytes:
        # Not through a link, and only a file of our own: machine code is about to be run from it.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if status.st_uid != os.getuid() or not stat.S_ISREG(status.st_mode):
                raise _BadEntry("it is not a file of this user")
            content = file.read()
        if len(content) < _HEADER.size:
            raise _BadEntry("it is cut off")
        magic, length, checksum = _HEADER.unpack_from(content)
        data = content[_HEADER.size :]
        if magic != _MAGIC or length != len(data):
            raise _BadEntry("it is cut off, or none of ours")
        if checksum != _checksum(path.parent.parent.name, path.name, data):
            raise _BadEntry("its checksum does not match")
        return data

    def _entries(self) -> list[tuple[Path, int, float]]:
        """(path, bytes, time of last use) of every entry; stale temporary files are removed."""
        found = []
        for path in self.directory.glob("*/??/*"):
            try:
                status = path.lstat()
            except OSError:
                continue  # another process removed it
            if path.name.startswith(_TEMPORARY):
                if time.time() - status.st_mtime > _STALE_SECONDS:
                    _remove(path)
            else:
                found.append((path, status.st_size, status.st_mtime))
        return found

    def _make_room(self, written: int) -> None:
        """Keeps the directory below its bound; looks at it once per sixteenth of the bound."""
        with self._lock:
            first = self._written == 0
            self._written += written
            if not first and self._written < self.max_bytes // 16:
                return
            self._written = 1
        entries = self._entries()
        total = sum(size for _, size, _ in entries)
        for path, size, _ in sorted(entries, key=lambda entry: entry[2]):
            if total <= self.max_bytes:
                return
            _remove(path)
            total -= size

    def _warn(self, about: str, message: str) -> None:
        if about in self._warned:
            return
        self._warned.add(about)
        warnings.warn(f"lamina's cache {message}", StoreWarning, stacklevel=3)


class _BadEntry(Exception):
    """A file in the store that is not a whole entry of this user."""


def default_store() -> Store | None:
    """The user's store: $LAMINA_CACHE_DIR or ~/.cache/lamina; None where LAMINA_CACHE=0."""
    if os.environ.get("LAMINA_CACHE", "1").lower() in ("0", "off", "false", "no"):
        return None
    directory = os.environ.get("LAMINA_CACHE_DIR")
    if not directory:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        directory = os.path.join(base, "lamina")
    return _store_at(os.path.abspath(directory))


_stores: dict[str, Store] = {}


def _store_at(directory: str) -> Store:
    """One Store for a directory in this process, so that it warns once."""
    return _stores.setdefault(directory, Store(directory))


def _checksum(kind: str, key: str, data: bytes) -> bytes:
    """Of the content under its name: an entry copied to another name is damaged."""
    digest = hashlib.blake2b(f"{kind}/{key}\0".encode(), digest_size=32)
    digest.update(data)
    return digest.digest()


def _write(path: Path, content: bytes) -> None:
    descriptor, temporary = tempfile.mkstemp(prefix=_TEMPORARY, dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        _remove(Path(temporary))
        raise


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
