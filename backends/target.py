"""What code is compiled for. A target is part of every cache key."""

from __future__ import annotations

import functools
from dataclasses import asdict, dataclass
from typing import Any


class TargetError(ValueError):
    """The text names no target that this build can compile for."""


@dataclass(frozen=True)
class Target:
    """A kind of device and what its code generator may assume.

    `features` is LLVM's list (`+avx2,-sse4a,...`), sorted; `vector_bits` is the widest vector worth
    using. How many threads there are is no part of it: the runtime divides the work as it runs.
    """

    kind: str
    triple: str
    cpu: str
    features: str
    vector_bits: int

    @staticmethod
    def host() -> Target:
        """This machine's processor."""
        return _host()

    @staticmethod
    def parse(text: str) -> Target:
        """The target named by `cpu` (this machine's). Raises TargetError for anything else."""
        kind, _, rest = text.partition(":")
        if kind == "cuda":
            raise TargetError(
                f"target {text!r}: the CUDA backend is not in this build yet; use target 'cpu'"
            )
        if kind != "cpu" or rest:
            raise TargetError(f"unknown target {text!r}: this build knows 'cpu'")
        return Target.host()

    def describe(self) -> dict[str, Any]:
        """The fields, for an artifact's manifest."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.kind}:{self.cpu}"


@functools.cache
def _host() -> Target:
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    if features.get("avx512f"):
        vector_bits = 512
    elif features.get("avx"):
        vector_bits = 256
    else:
        vector_bits = 128
    flags = ",".join(("+" if on else "-") + name for name, on in sorted(features.items()))
    return Target(
        kind="cpu",
        triple=llvm.get_process_triple(),
        cpu=llvm.get_host_cpu_name(),
        features=flags,
        vector_bits=vector_bits,
    )
