"""effects_barrier: waiting for what programs do besides giving results."""

from __future__ import annotations


def effects_barrier() -> None:
    """Returns when all effects of the calls made so far have happened.

    That is so before it is called: a program with callbacks has run when its call returns.

    >>> lamina.effects_barrier()
    """
