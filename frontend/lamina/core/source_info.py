"""Where in the user's code something happened: the frames outside lamina, innermost first."""

from __future__ import annotations

import linecache
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from types import CodeType, FrameType
from typing import NamedTuple

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# The repository folders that are mapped into the package, for source checkouts.
_REPOSITORY = os.path.dirname(os.path.dirname(_PACKAGE))
_INTERNAL = tuple(
    os.path.join(root, name) + os.sep
    for root, names in (
        (_REPOSITORY, ("dialects", "passes", "backends", "runtime")),
        (os.path.dirname(_PACKAGE), ("lamina",)),
    )
    for name in names
)
_MAX_FRAMES = 8

_internal_files: dict[str, bool] = {}  # by file: code objects take long to hash
_left_out: set[str] = set()


def package_folders() -> list[str]:
    """The folders that hold lamina's own files."""
    return [p for p in _INTERNAL if os.path.isdir(p)]


class Frame(NamedTuple):
    """One frame of the user's code."""

    file: str
    line: int
    column: int
    function: str

    @property
    def text(self) -> str:
        """The source line, or "" where it can't be read."""
        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        return f"{self.file}:{self.line} ({self.function})"


class SourceInfo:
    """A stack of user frames, kept as code objects and offsets until someone asks, and the
    named_scopes around."""

    __slots__ = ("_frames", "raw", "scope")

    def __init__(self, raw: tuple[tuple[CodeType, int], ...], scope: str = "") -> None:
        self.raw, self.scope = raw, scope
        self._frames: tuple[Frame, ...] | None = None

    @property
    def frames(self) -> tuple[Frame, ...]:
        """User frames, innermost first."""
        if self._frames is None:
            self._frames = tuple(frame_at(code, lasti) for code, lasti in self.raw)
        return self._frames

    def summary(self) -> str:
        """`file:line (function)` of the innermost user frame, or "unknown location"."""
        return str(self.frames[0]) if self.raw else "unknown location"


UNKNOWN = SourceInfo(())


def is_internal(code: CodeType) -> bool:
    """Whether a code object belongs to lamina (or to what runs Python itself)."""
    file = code.co_filename
    known = _internal_files.get(file)
    if known is None:
        known = (
            file.startswith(_INTERNAL)
            or file in _left_out
            or file.startswith("<frozen")
            or (
                os.sep + "optree" + os.sep in file
                or file.endswith(("functools.py", "contextlib.py"))
            )
        )
        _internal_files[file] = known
    return known


def leave_out_file(file: str) -> None:
    """Leaves the frames of a library's file out of tracebacks and of equations' places, as lamina's
    own are.

    file  its path, usually __file__.

    >>> lamina.extend.source_info_util.register_exclusion("/path/of/a/library.py")
    """
    _left_out.add(file)
    _internal_files.clear()


def is_user_frame(frame: FrameType) -> bool:
    """Whether a stack frame runs the user's code."""
    return not is_internal(frame.f_code)


class _Place(threading.local):
    info: SourceInfo | None = None
    scope = ""  # a/b/


_place = _Place()


@contextmanager
def at_places() -> Iterator[Callable[[SourceInfo | None], None]]:
    """For interpreters of jaxprs: in the block, at(equation.source_info) makes that the place of
    what is made of the equation; at(None) goes back to the frames of who calls."""
    outside = _place.info

    def at(info: SourceInfo | None) -> None:
        _place.info = outside if info is UNKNOWN else info

    try:
        yield at
    finally:
        _place.info = outside


@contextmanager
def named_scope(name: str) -> Iterator[None]:
    """Puts `name/` before the names of the operations made in the block, in StableHLO's locations
    and in the manifest's kernels. Also a decorator.

    name  a string; TypeError for others.

    >>> with lamina.named_scope("layer"):
    ...     y = jnp.ones(2) + 1
    """
    if not isinstance(name, str):
        raise TypeError(f"named_scope name argument must be a string, got {name!r}")
    outside = _place.scope
    _place.scope = f"{outside}{name}/"
    try:
        yield
    finally:
        _place.scope = outside


def current() -> SourceInfo:
    """The place of the equation that is being evaluated, or else the user frames of the caller."""
    if _place.info is not None:
        return _place.info
    raw = []
    frame = sys._getframe(1)
    get = _internal_files.get
    while frame is not None:
        code = frame.f_code
        internal = get(code.co_filename)
        if internal is None:
            internal = is_internal(code)
        if not internal:
            raw.append((code, frame.f_lasti))
            if len(raw) == _MAX_FRAMES:
                break
        frame = frame.f_back  # type: ignore[assignment]
    return SourceInfo(tuple(raw), _place.scope)


def pin() -> bool:
    """Makes the caller's place that of all equations until `unpin`, for what makes several; False
    where it is that of an equation that is being evaluated already."""
    if _place.info is not None:
        return False
    _place.info = current()
    return True


def unpin() -> None:
    """Ends what `pin` began."""
    _place.info = None


def frame_at(code: CodeType, lasti: int) -> Frame:
    """The place of an instruction of a code object."""
    line, _, column, _ = next(islice(code.co_positions(), lasti // 2, None), (None,) * 4)
    line, column = line or code.co_firstlineno, column or 0
    return Frame(code.co_filename, line, column + 1, code.co_qualname)
