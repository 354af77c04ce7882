"""Notes to XLA, which programs for JAX hold. They have no effect: nothing here reads them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from lamina.control_flow.tracing import check_callable
from lamina.core.wrapping import wraps

__all__ = ["fuse_limit", "must_fuse_call", "set_xla_metadata", "xla_metadata_call", "xla_metadata_call2"]


class _Block:
    """`with` and decorator of set_xla_metadata."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: Any) -> None:
        return None

    def __call__(self, f: Callable[..., Any]) -> Callable[..., Any]:
        return wraps(f)(lambda *args, **kwargs: f(*args, **kwargs))


def set_xla_metadata(x: Any = None, **kwargs: Any) -> Any:
    """Notes for what is computed within a block, or by a function, or for a value; without effect.

    x       a tree of arrays, which is given back; None: gives a context manager that is a decorator, too.
    kwargs  the notes.

    >>> xla_metadata = lamina.experimental.xla_metadata
    >>> with xla_metadata.set_xla_metadata(inlineable="false"):
    ...     print(xla_metadata.set_xla_metadata(jnp.ones(2), note=1))
    [1. 1.]
    """
    return _Block() if x is None else x


def xla_metadata_call(f: Callable[..., Any] | None = None, /, **meta: Any) -> Any:
    """f with notes for its call; without effect.

    f     a function; without it a decorator is given.
    meta  the notes, as set_xla_metadata takes them.

    >>> xla_metadata = lamina.experimental.xla_metadata
    >>> float(xla_metadata.xla_metadata_call(lambda x: x + 1, note="here")(1.0))
    2.0
    """
    return xla_metadata_call2(f, meta)


def xla_metadata_call2(
    f: Callable[..., Any] | None = None, /, metadata: dict[str, Any] | None = None, *, ad_metadata: Any = "same"
) -> Any:
    """xla_metadata_call with the notes in a dict.

    f            a function; without it a decorator is given.
    metadata     the notes.
    ad_metadata  those of its derivatives.

    >>> xla_metadata = lamina.experimental.xla_metadata
    >>> float(xla_metadata.xla_metadata_call2(lambda x: x + 1, {"note": "here"})(1.0))
    2.0
    """
    if f is None:
        return functools.partial(xla_metadata_call2, metadata=metadata, ad_metadata=ad_metadata)
    check_callable(f)
    return _Block()(f)


def must_fuse_call(identifier: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator of functions that XLA is to make one kernel of; without effect.

    identifier  their name.

    >>> xla_metadata = lamina.experimental.xla_metadata
    >>> float(xla_metadata.must_fuse_call("one")(lambda x: x + 1)(1.0))
    2.0
    """
    return functools.partial(xla_metadata_call2, metadata={"must_fuse": identifier})


@contextmanager
def fuse_limit() -> Iterator[None]:
    """A block whose operations XLA is not to fuse with others; without effect.

    >>> with lamina.experimental.xla_metadata.fuse_limit():
    ...     print(jnp.ones(2) + 1)
    [2. 2.]
    """
    yield
