"""Groups of operations that XLA is to schedule together. A name alone: the order is the compiler's here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lamina.experimental.xla_metadata import xla_metadata_call

__all__ = ["scheduling_group"]


def scheduling_group(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator of functions whose operations are one group; without effect.

    name  of the group.

    >>> group = lamina.experimental.scheduling_groups.scheduling_group
    >>> float(group("first")(lambda x: x + 1)(1.0))
    2.0
    """
    return xla_metadata_call(scheduling_group=name, inlineable="false")
