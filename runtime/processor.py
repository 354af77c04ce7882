"""What this machine's processor has, and what code that was compiled for another needs."""

from __future__ import annotations

import functools
import os
import platform
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from lamina.runtime import _runtime


def vector_bits(features: Collection[str]) -> int:
    """The widest vectors worth using on a processor that has these features: 512, 256 or 128 bits."""
    return 512 if "avx512f" in features else 256 if "avx2" in features else 128


class Level(NamedTuple):
    """Processors that have at least these features, by LLVM's names."""

    features: tuple[str, ...]

    @property
    def vector_bits(self) -> int:
        """The widest vectors that these are sure to have."""
        return vector_bits(self.features)


_V1 = ("64bit", "cmov", "cx8", "fxsr", "mmx", "sse", "sse2")
_V2 = (*_V1, "cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3")
_V3 = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
_V4 = (*_V3, "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl")

LEVELS = {
    "x86-64": Level(_V1),
    "x86-64-v2": Level(_V2),
    "x86-64-v3": Level(_V3),
    "x86-64-v4": Level(_V4),
}
"""The levels of the x86-64 psABI, section 3.1.1, by the names that compilers give them."""


class ProcessorError(RuntimeError):
    """Code for a processor that this machine does not have."""


class Processor(NamedTuple):
    """A kind of processor: a level, and features that it has beyond that."""

    level: str
    further: tuple[str, ...] = ()

    @staticmethod
    def parse(text: str) -> Processor:
        """The kind that is written as a level with `+` before each further feature, by LLVM's names:
        `x86-64-v3`, `x86-64-v3+avxvnni`, `x86-64-v4+avx512vnni+amx-tile+amx-int8`.

        Raises ValueError for another level.
        """
        level, *further = text.split("+")
        if level not in LEVELS:
            raise ValueError(
                f"{text!r} is no kind of processor: expected one of {', '.join(LEVELS)}, and after it "
                "further features by LLVM's names, such as x86-64-v4+avx512vnni"
            )
        return Processor(level, tuple(sorted(set(further))))

    @property
    def features(self) -> frozenset[str]:
        """All that it has."""
        return frozenset((*LEVELS[self.level].features, *self.further))


def assumed_processor() -> Processor | None:
    """The kind that this process takes its processor to be, from LAMINA_PROCESSOR; None for what it is.

    Raises ValueError where that names none.
    """
    text = os.environ.get("LAMINA_PROCESSOR")
    try:
        return Processor.parse(text) if text else None
    except ValueError as error:
        raise ValueError(f"environment variable LAMINA_PROCESSOR: {error}") from None


def processor_name() -> str:
    """What LLVM calls this machine's processor, or the level that it is taken to be of."""
    import llvmlite.binding as llvm

    assumed = assumed_processor()
    return assumed.level if assumed else str(llvm.get_host_cpu_name())


@functools.cache
def processor_features() -> Mapping[str, bool]:
    """The features that LLVM knows of for processors like this one, and whether it has them. Tile
    registers (AMX) it has where Linux lets this process use them.

    Where LAMINA_PROCESSOR names a kind of processor, only that kind's. Raises ProcessorError if this
    machine lacks some of those.
    """
    import llvmlite.binding as llvm

    features: dict[str, bool] = dict(llvm.get_host_cpu_features())
    if not _runtime.request_tile_registers():
        features.update({name: False for name in features if name.startswith("amx")})
    assumed = assumed_processor()
    if assumed is None:
        return features
    lacks = sorted(name for name in assumed.features if not features.get(name, False))
    if lacks:
        raise ProcessorError(
            f"LAMINA_PROCESSOR={os.environ['LAMINA_PROCESSOR']}, and this processor lacks "
            f"{', '.join(lacks)}: it can be taken for one with fewer features only"
        )
    return {name: name in assumed.features for name in features}


def check_processor(target: Mapping[str, Any]) -> None:
    """Raises ProcessorError for the target of an artifact (its `triple`, `cpu` and `features`) whose
    code would end this process with an illegal instruction."""
    _check(*(target.get(key, "") for key in ("triple", "cpu", "features")))


@functools.lru_cache(64)
def _check(triple: str, cpu: str, features: str) -> None:
    architecture, here = triple.partition("-")[0], platform.machine()
    if architecture and architecture != here:
        raise ProcessorError(f"compiled for {architecture}, and this machine is {here}")
    level = LEVELS.get(cpu, Level(()))
    needed = {*level.features, *(name[1:] for name in features.split(",") if name[:1] == "+")}
    there = processor_features()
    missing = sorted(name for name in needed if not there.get(name, False))
    if missing:
        raise ProcessorError(
            f"compiled for {cpu}, and this processor lacks {', '.join(missing)}: compile it here, or "
            "with a target that both have, such as 'cpu:x86-64-v3'"
        )
