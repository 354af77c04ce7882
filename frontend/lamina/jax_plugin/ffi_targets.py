"""Handlers of XLA's foreign function interface that programs may name, wherever they were registered:
by `jax.ffi.register_ffi_target` for the CPU, or by `lamina.ffi.register_ffi_target`.
"""

from __future__ import annotations

from typing import Any

_HOST = "Host"  # what XLA calls the CPU


def address_of(name: str) -> int | None:
    """The address of a handler; None where none has this name.

    Raises NotImplementedError for one that keeps state, with stages of its own for that.
    """
    from lamina.ffi.targets import capsule_address, find

    address = find(name)
    if address is not None:
        return address
    found = _of_jax().get(name)
    if found is None:
        return None
    if isinstance(found, dict):
        others = sorted(stage for stage, given in found.items() if stage != "execute" and given)
        if others:
            raise NotImplementedError(
                f"the FFI target {name!r} has handlers for {', '.join(others)}: only those of the stage "
                "execute alone are called"
            )
        found = found["execute"]
    return capsule_address(name, found)


def _of_jax() -> dict[str, Any]:
    """What is registered with jaxlib. Targets wait in a list until a CPU client is made or someone says,
    as here, who is to be given them."""
    from jaxlib import xla_client

    client = getattr(xla_client, "_xla", None)
    if client is not None:
        xla_client.register_custom_call_handler("cpu", client.register_custom_call_target)
    return dict(xla_client.custom_call_targets(_HOST))
