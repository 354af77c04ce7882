"""Settings that forbid something: tracing, running programs, moving what is on the host to a device."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lamina import config
from lamina.array import ArrayImpl
from lamina.core.library import library
from lamina.core.trace import Tracer, get_aval
from lamina.errors import JaxRuntimeError
from lamina.key_array import KeyArray


def refuse_execution(name: str) -> None:
    """Raises RuntimeError where the setting no_execution forbids to run a program."""
    if config.no_execution.value:
        raise RuntimeError(
            f"{library.name} tried to execute function jit({name}), but the no_execution config "
            "option is set"
        )


def watching_transfers() -> bool:
    """Whether a guard looks at what goes from the host to a device."""
    return _level() != "allow"


def check_transfers(values: Iterable[Any], explicit: bool = False) -> None:
    """Logs or refuses values that are on the host and become arrays, as transfer_guard says.

    explicit  the program asks for it, as device_put does; only the levels log_explicit and
              disallow_explicit look at that.

    Raises JaxRuntimeError.
    """
    level = _level()
    if level == "allow" or (explicit and not level.endswith("_explicit")):
        return
    for x in values:
        if isinstance(x, (ArrayImpl, KeyArray, Tracer)):
            continue
        what = f"host-to-device transfer: aval={get_aval(x)!r}"
        if level.startswith("disallow"):
            raise JaxRuntimeError(f"INVALID_ARGUMENT: Disallowed {what}")
        import logging

        logging.getLogger("lamina").warning(what)


def _level() -> str:
    own = config.transfer_guard_host_to_device.value
    return config.transfer_guard.value if own is None else own
