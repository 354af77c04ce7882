"""Errors as JAX's runtime has them: a code of the status, and a message."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from lamina.jax_plugin.compile_options import WireError


class PluginError(Exception):
    """What a call of the plugin failed with.

    code  the name of the status that JAX shows: "UNIMPLEMENTED", "INVALID_ARGUMENT", ...
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def message(self) -> str:
        """What was wrong, where, and what to do."""
        return str(self.args[0])


@contextlib.contextmanager
def as_statuses() -> Iterator[None]:
    """Errors of the compiler, of the loader and of Python as PluginError with their codes."""
    try:
        yield
    except PluginError:
        raise
    except Exception as error:
        raise _status_of(error) from error


def _status_of(error: Exception) -> PluginError:
    """Asked where something failed: programs that are found in the store need no MLIR, which these load."""
    from lamina.dialects.parse_error import ParseError
    from lamina.passes.framework.base import CompileError, PassError
    from lamina.runtime.artifact import ArtifactError
    from lamina.runtime.executable import LoadError

    codes: tuple[tuple[type[Exception], str], ...] = (
        (PassError, "INTERNAL"),
        (CompileError, "UNIMPLEMENTED"),
        (NotImplementedError, "UNIMPLEMENTED"),
        (ParseError, "INVALID_ARGUMENT"),
        (WireError, "INVALID_ARGUMENT"),
        (ArtifactError, "INVALID_ARGUMENT"),
        (LoadError, "FAILED_PRECONDITION"),
        (MemoryError, "RESOURCE_EXHAUSTED"),
    )
    for of, code in codes:
        if isinstance(error, of):
            return PluginError(code, str(error))
    return PluginError("INTERNAL", f"{type(error).__name__}: {error}")
