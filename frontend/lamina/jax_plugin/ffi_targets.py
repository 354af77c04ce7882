"""Handlers of XLA's foreign function interface that programs may name, wherever they were registered:
by `jax.ffi.register_ffi_target` for the CPU or for this platform, or by `lamina.ffi.register_ffi_target`.
"""

from __future__ import annotations

from typing import Any

_HOST = "Host"  # what XLA calls the CPU

_refused: dict[str, Exception] = {}
"""By name, what is wrong with handlers that were registered before anybody listened."""


def listen(platform: str) -> None:
    """Take the handlers that are registered with JAX for a platform, from now on and before."""
    from jaxlib import xla_client

    is_waiting = True

    def take(name: str | bytes, handler: Any, _platform: str, api_version: int = 0, traits: Any = None) -> None:
        from lamina.ffi.targets import register_ffi_target

        text = name.decode() if isinstance(name, bytes) else name
        try:
            register_ffi_target(text, handler, api_version=api_version)
        except (TypeError, ValueError, NotImplementedError) as error:
            if not is_waiting:
                raise
            _refused[text] = error  # raised here, it would keep JAX from the whole backend
        else:
            _refused.pop(text, None)

    xla_client.register_custom_call_handler(platform, take)
    is_waiting = False


def address_of(name: str) -> int | None:
    """The address of a handler; None where none has this name.

    Raises NotImplementedError for one that keeps state, with stages of its own for that, and what was wrong
    with one that was registered for this platform.
    """
    from lamina.ffi.targets import capsule_address, find

    address = find(name)
    if address is not None:
        return address
    if name in _refused:
        raise NotImplementedError(str(_refused[name])) from _refused[name]
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
