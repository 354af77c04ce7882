"""Several processes that work together: lamina programs run in one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lamina.core.library import library

__all__ = ["initialize", "is_initialized", "shutdown"]

_initialized = False


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: int | Sequence[int] | None = None,
    **options: Any,
) -> None:
    """Says that this process is the only one, for programs that begin so: lamina runs in one
    process.

    coordinator_address  without effect,
    num_processes        1 or None,
    process_id           0 or None,
    local_device_ids     without effect; and so are other options.

    Raises NotImplementedError where there are to be more processes; RuntimeError where it was said
    before.

    >>> lamina.distributed.initialize(num_processes=1, process_id=0)
    >>> lamina.distributed.shutdown()
    """
    global _initialized
    if num_processes not in (None, 1) or process_id not in (None, 0):
        raise NotImplementedError(
            f"[distributed] num_processes={num_processes}, process_id={process_id}: {library.name} runs "
            f"programs in one process. {library.variable('num_cpu_devices')} gives it several devices."
        )
    if _initialized:
        raise RuntimeError("distributed.initialize should only be called once.")
    _initialized = True


def is_initialized() -> bool:
    """Whether initialize has been called, and not taken back.

    >>> lamina.distributed.is_initialized()
    False
    """
    return _initialized


def shutdown() -> None:
    """Takes initialize back; does nothing where it was not called.

    >>> lamina.distributed.shutdown()
    """
    global _initialized
    _initialized = False
