"""effects_barrier: waiting for what programs do besides giving results."""

from __future__ import annotations

from lamina import runtime


def effects_barrier() -> None:
    """Returns when all effects of the calls made so far have happened.

    Raises JaxRuntimeError where a callback of one of them raised, and no reader of its results has
    been told.
    """
    runtime.wait_for_effects()
