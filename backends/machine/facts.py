"""What Linux says of the caches of this machine's processor."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def read_facts(caches: Path = _CACHES) -> dict[str, int]:
    """`l1_bytes`, `l2_bytes`, `l3_bytes`, as far as they are said: not everywhere, and on a virtual
    machine what its host chose to say."""
    found: dict[str, int] = {}
    for cache in sorted(caches.glob("index*")):
        with suppress(OSError, ValueError, KeyError):
            if _line(cache / "type") not in ("Data", "Unified"):
                continue
            level, size = int(_line(cache / "level")), _line(cache / "size")
            if level <= 3 and (count := int(size[:-1])) > 0:
                found[f"l{level}_bytes"] = count * _UNITS[size[-1]]
    return found


def _line(path: Path) -> str:
    return path.read_text().strip()
