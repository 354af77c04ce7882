"""`Store`: compiled programs on disk, found again by what they were made from.

One file an entry, `<dir>/<kind>/<2 hex>/<key>`. A file is complete or absent: it is written under
a temporary name and renamed, so that readers in other processes, a crash or kill -9 never see a
part of one. What is damaged, foreign or of another format is treated as absent. The store is a
cache: nothing it meets on the disk is an error to its caller; it warns once and goes on without.

The file `<dir>/bytes` counts the bytes of all entries, so that a write need not look at the others:
they are listed when the count has passed the bound, and then enough are removed for an eighth of the
bound to be written before it is passed again.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import stat
import struct
import tempfile
import time
import warnings
from pathlib import Path

from lamina.forks import new_lock

_MAGIC = b"LAMSTORE"
_HEADER = struct.Struct("<8sQ32s")
_TEMPORARY = ".partial-"
_COUNT = "bytes"
_COUNT_DIGITS = 20
_ROOM = 8  # of the bound, what is made room for at once: one part in so many
_STALE_SECONDS = 3600.0  # a temporary file this old was left by a process that died
_preparing = new_lock()
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
        self._warned: set[str] = set()
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
            replaced = _size_of(path)
            _write(path, header + data)
        except OSError as error:
            self._warn("write", f"cannot write to {self.directory}: {error}")
            return False
        if self._count(len(header) + len(data) - replaced) > self.max_bytes:
            self._make_room()
        return True

    def clear(self) -> None:
        """Removes every entry."""
        for path, _, _ in self._entries():
            _remove(path)
        if self.directory.is_dir():
            self._count(0, anew=True)

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
        with _preparing:
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
        # Not through a link, and only a file that nobody else writes: machine code is about to be run
        # from it. Nor is another end waited for, where it is a pipe.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        descriptor = os.open(path, flags)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if status.st_uid != os.getuid() or not stat.S_ISREG(status.st_mode):
                raise _BadEntry("it is not a file of this user")
            if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                raise _BadEntry("others could write to it")
            if not _HEADER.size <= status.st_size <= self.max_bytes:
                raise _BadEntry("it is cut off, or larger than the store may be")
            content = file.read(status.st_size)
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

    def _make_room(self) -> None:
        """Removes what was used least recently until a part of the bound is free."""
        entries = self._entries()
        total = sum(size for _, size, _ in entries)
        if total > self.max_bytes:
            for path, size, _ in sorted(entries, key=lambda entry: entry[2]):
                if total <= self.max_bytes - self.max_bytes // _ROOM:
                    break
                _remove(path)
                total -= size
        self._count(total, anew=True)

    def _count(self, size: int, anew: bool = False) -> int:
        """The bytes of all entries as they are counted, after adding some, or counting `anew`.

        Where another process counts at this moment this one does not: an entry too few until all are
        listed again is no harm, and a process that was stopped there would be waited for.
        """
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        try:
            descriptor = os.open(self.directory / _COUNT, flags, 0o600)
            with os.fdopen(descriptor, "r+b") as file:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                text = b"0" if anew else file.read(_COUNT_DIGITS).strip()
                total = max(0, (int(text) if text.isdigit() else 0) + size)
                file.seek(0)
                file.write(b"%*d\n" % (_COUNT_DIGITS - 1, total))
                return total
        except OSError:
            return 0

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


def _size_of(path: Path) -> int:
    try:
        return path.lstat().st_size
    except FileNotFoundError:
        return 0


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
