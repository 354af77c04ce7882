"""What this machine's processor has, and what code that was compiled for another needs."""

from __future__ import annotations

import functools
import platform
from collections.abc import Mapping
from typing import Any, NamedTuple

from lamina.runtime import _runtime


class Level(NamedTuple):
    """Processors that have at least these features, by LLVM's names, and vectors of so many bits."""

    features: tuple[str, ...]
    vector_bits: int


_V2 = ("cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3")
_V3 = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
_V4 = (*_V3, "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl")

LEVELS = {
    "x86-64": Level((), 128),
    "x86-64-v2": Level(_V2, 128),
    "x86-64-v3": Level(_V3, 256),
    "x86-64-v4": Level(_V4, 512),
}
"""The levels of the x86-64 psABI, section 3.1.1, by the names that compilers give them."""


class ProcessorError(RuntimeError):
    """Code for a processor that this machine does not have."""


@functools.cache
def processor_features() -> Mapping[str, bool]:
    """The features that LLVM knows of for processors like this one, and whether it has them. Tile
    registers (AMX) it has where Linux lets this process use them."""
    import llvmlite.binding as llvm

    features: dict[str, bool] = dict(llvm.get_host_cpu_features())
    if not _runtime.request_tile_registers():
        features.update({name: False for name in features if name.startswith("amx")})
    return features


def check_processor(target: Mapping[str, Any]) -> None:
    """Raises ProcessorError for the target of an artifact (its `triple`, `cpu` and `features`) whose
    code would end this process with an illegal instruction."""
    _check(*(target.get(key, "") for key in ("triple", "cpu", "features")))


@functools.lru_cache(64)
def _check(triple: str, cpu: str, features: str) -> None:
    architecture, here = triple.partition("-")[0], platform.machine()
    if architecture and architecture != here:
        raise ProcessorError(f"compiled for {architecture}, and this machine is {here}")
    level = LEVELS.get(cpu, Level((), 0))
    needed = {*level.features, *(name[1:] for name in features.split(",") if name[:1] == "+")}
    there = processor_features()
    missing = sorted(name for name in needed if not there.get(name, False))
    if missing:
        raise ProcessorError(
            f"compiled for {cpu}, and this processor lacks {', '.join(missing)}: compile it here, or "
            "with a target that both have, such as 'cpu:x86-64-v3'"
        )
