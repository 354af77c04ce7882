"""How many threads programs on the CPU use: `set_num_threads`, `get_num_threads`, `num_threads`."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterator

from lamina import runtime


def set_num_threads(count: int | None) -> None:
    """Let programs use so many threads, the caller's included; None for as many as there are CPUs.

    It holds for the whole process, products by BLAS included, and from the next kernel on; no thread
    is started before one is needed. "As many as there are CPUs" means those this process may use
    (affinity, cgroup limits) or `LAMINA_NUM_THREADS`.

    Raises TypeError unless `count` is an integer or None, ValueError if it is less than one.

    >>> before = lamina.get_num_threads()
    >>> lamina.set_num_threads(1)
    >>> lamina.set_num_threads(before)
    """
    if count is None:
        runtime.set_num_threads(0)
        return
    try:
        number = operator.index(count)
    except TypeError as e:
        raise TypeError(
            f"set_num_threads takes an integer or None, got {type(count).__name__}"
        ) from e
    if number < 1:
        raise ValueError(f"a program needs at least one thread, got {number}; None is the default")
    runtime.set_num_threads(number)


def get_num_threads() -> int:
    """How many threads programs may use.

    >>> with lamina.num_threads(1):
    ...     lamina.get_num_threads()
    1
    """
    return int(runtime.get_num_threads())


@contextlib.contextmanager
def num_threads(count: int | None) -> Iterator[None]:
    """A block in which programs use so many threads; after it what it was before.

    count  as of `set_num_threads`.

    As `set_num_threads` it holds for the whole process: other Python threads see it, too.

    >>> with lamina.num_threads(1):
    ...     y = jnp.ones(1000).sum()
    """
    before = get_num_threads()
    set_num_threads(count)
    try:
        yield
    finally:
        set_num_threads(before)
