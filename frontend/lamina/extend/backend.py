"""The platforms that programs run on."""

from __future__ import annotations

import dataclasses
from typing import Any

from lamina.core.library import library
from lamina.devices import default_backend, default_device
from lamina.devices import devices as all_devices

__all__ = ["Backend", "backend_xla_version", "backends", "clear_backends", "get_backend",
           "get_default_device"]  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Backend:
    """A platform, "cpu" or "cuda"."""

    platform: str

    @property
    def platform_version(self) -> str:
        """What compiles for it."""
        import lamina

        return f"{library.name} {lamina.__version__}"

    def devices(self) -> list[Any]:
        """Its devices."""
        return list(all_devices(self.platform))

    local_devices = devices

    def device_count(self) -> int:
        """How many they are."""
        return len(self.devices())

    local_device_count = device_count

    def process_index(self) -> int:
        """The number of this process: 0."""
        return 0


def get_backend(platform: str | None = None) -> Backend:
    """A platform by name.

    platform  "cpu" or "cuda"; None: the default one.

    Raises RuntimeError where it is not there.

    >>> lamina.extend.backend.get_backend("cpu").platform
    'cpu'
    """
    name = platform or default_backend()
    return Backend(all_devices(name)[0].platform)


def backends() -> dict[str, Backend]:
    """All platforms that are there, by name: a dict.

    >>> "cpu" in lamina.extend.backend.backends()
    True
    """
    found = {}
    for name in ("cpu", "cuda"):
        try:
            found[name] = get_backend(name)
        except RuntimeError:
            continue
    return found


def get_default_device() -> Any:
    """The device that new arrays go to.

    >>> lamina.extend.backend.get_default_device() in lamina.devices()
    True
    """
    return default_device() or all_devices()[0]


def backend_xla_version(platform: str | None = None) -> None:
    """None: there is no XLA.

    platform  without effect.

    >>> lamina.extend.backend.backend_xla_version()
    """


def clear_backends() -> None:
    """Forgets every program that was compiled, so that the next call of each compiles it again.

    >>> lamina.extend.backend.clear_backends()
    """
    from lamina.environment import clear_caches

    clear_caches()
