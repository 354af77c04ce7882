"""What code is compiled for. A target is part of every cache key."""

from __future__ import annotations

import functools
from dataclasses import asdict
from typing import Any

from lamina.backends.machine.choice import machine_for, machine_here
from lamina.passes.framework.machine import REFERENCE, Machine
from lamina.records import Record
from lamina.runtime.processor import (
    LEVELS,
    Processor,
    processor_features,
    processor_name,
    vector_bits,
)

CUDA_ARCHITECTURES = (
    "sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_103",
    "sm_103a", "sm_120", "sm_120a", "sm_121", "sm_121a",
)  # fmt: skip
_WITH_F8 = ("sm_89", "sm_90", "sm_90a")
"""Architectures whose tensor cores take f8 only from a later version of PTX on than LLVM writes."""
_PRODUCT_FEATURES = ("amx-int8", "amx-bf16", "avx512bf16", "avx512vnni")
DEFAULT_CUDA_ARCHITECTURE = "sm_90a"


class TargetError(ValueError):
    """The text names no target that this build can compile for."""


class Target(Record):
    """A kind of device and what its code generator may assume: `Target("cuda", "sm_90a")`,
    `Target.host()`, or `Target.parse("cpu:x86-64-v3")` for code that runs on other machines, too.

    `cpu` is the processor's name, for GPUs the architecture's. `features` is LLVM's list
    (`+avx2,-sse4a,...`), sorted; `vector_bits` is the widest vector worth using; `machine` has sizes of caches
    and what work takes there. How many threads there are is no part of it: the runtime divides the work as it
    runs.
    """

    kind: str
    cpu: str
    triple: str = ""
    features: str = ""
    vector_bits: int = 128
    machine: Machine = REFERENCE

    def __post_init__(self) -> None:
        if self.kind == "cuda":
            if self.cpu not in CUDA_ARCHITECTURES:
                listed = ", ".join(CUDA_ARCHITECTURES)
                raise TargetError(f"unknown GPU architecture {self.cpu!r}; there are {listed}")
            object.__setattr__(self, "triple", "nvptx64-nvidia-cuda")
            if self.cpu in _WITH_F8 and not self.features:
                object.__setattr__(self, "features", "+ptx84")

    @staticmethod
    def host() -> Target:
        """This machine's processor."""
        return _host()

    @staticmethod
    def parse(text: str) -> Target:
        """The target named by `cpu` (this machine's processor), `cpu:x86-64-v3` (any that has at least
        that level of the x86-64 psABI: such code runs elsewhere, too), `cpu:x86-64-v4+avx512vnni` (those
        that have further features, too, by LLVM's names), `cuda` or `cuda:sm_80`.

        Without an architecture a GPU is sm_90a. Raises TargetError for anything else.
        """
        if not isinstance(text, str):
            raise TargetError(f"a target is text such as 'cpu' or 'cuda:sm_90a', got {text!r}")
        kind, _, rest = text.partition(":")
        if kind == "cuda":
            return Target("cuda", rest or DEFAULT_CUDA_ARCHITECTURE)
        level = rest.partition("+")[0]
        if kind != "cpu" or (rest and level not in LEVELS):
            levels = ", ".join(f"'cpu:{name}'" for name in LEVELS)
            raise TargetError(
                f"unknown target {text!r}: there are 'cpu', which is this machine's, {levels}, and "
                "GPUs such as 'cuda:sm_90a'"
            )
        return _of_kind(Processor.parse(rest)) if rest else Target.host()

    @staticmethod
    def of_capability(major: int, minor: int) -> Target:
        """The target for a GPU of this compute capability; for one that is newer than those known
        here, the nearest before it, whose PTX the driver compiles.

        Raises TargetError for one that is too old.
        """
        best: tuple[int, int, bool] | None = None
        for name in CUDA_ARCHITECTURES:
            digits = name.removeprefix("sm_").rstrip("a")
            known = (int(digits[:-1]), int(digits[-1]))
            exact = name.endswith("a")  # its code runs on no other architecture
            if known <= (major, minor) and (not exact or known == (major, minor)):
                best = max(best or (0, 0, False), (*known, exact))
        if best is None:
            raise TargetError(
                f"a GPU of compute capability {major}.{minor} is too old: 7.5 is the least"
            )
        return Target("cuda", f"sm_{best[0]}{best[1]}{'a' if best[2] else ''}")

    @property
    def product_features(self) -> str:
        """Those features that multiply narrow numbers, with `+` between them."""
        return "+".join(name for name in _PRODUCT_FEATURES if f"+{name}" in self.features.split(","))

    @property
    def gathers(self) -> bool:
        """Whether one instruction loads elements from anywhere faster than one each does. AMD's processors do it
        in microcode, and up to 256 bits there are few elements."""
        return self.vector_bits == 512 and not self.cpu.startswith("znver")

    @property
    def tuned_features(self) -> str:
        """`features`, and that LLVM is to load elements one by one where that is faster."""
        loads_each = self.vector_bits == 512 and not self.gathers  # else it does so anyway
        return f"{self.features},+prefer-no-gather" if loads_each else self.features

    def describe(self) -> dict[str, Any]:
        """The fields, for an artifact's manifest."""
        return {**asdict(self), "machine": self.machine.describe()}

    @staticmethod
    def described(fields: dict[str, Any]) -> Target:
        """The target that `describe` described."""
        return Target(**{**fields, "machine": Machine.described(fields.get("machine", {}))})

    def __str__(self) -> str:
        return f"{self.kind}:{self.cpu}"


@functools.cache
def _host() -> Target:
    import llvmlite.binding as llvm

    features = processor_features()
    flags = ",".join(("+" if on else "-") + name for name, on in sorted(features.items()))
    cpu, there = processor_name(), [name for name, on in features.items() if on]
    return Target(
        kind="cpu",
        triple=llvm.get_process_triple(),
        cpu=cpu,
        features=flags,
        vector_bits=vector_bits(there),
        machine=machine_here(cpu, there),
    )


def _of_kind(processor: Processor) -> Target:
    import llvmlite.binding as llvm

    triple = llvm.get_process_triple()
    if not triple.startswith("x86_64"):
        raise TargetError(
            f"'cpu:{processor.level}' is a level of x86-64, and this machine is {triple}"
        )
    known = llvm.get_host_cpu_features()
    unknown = [repr(name) for name in processor.further if name not in known]
    if unknown:
        raise TargetError(f"LLVM knows no feature {' or '.join(unknown)} of processors")
    return Target(
        kind="cpu",
        triple=triple,
        cpu=processor.level,
        features=",".join(f"+{name}" for name in processor.further),
        vector_bits=vector_bits(processor.features),
        machine=machine_for(processor.level, processor.features),
    )
