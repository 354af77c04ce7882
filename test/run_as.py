"""Runs a command as on another machine: lamina, NumPy, OpenBLAS and XLA use what its processor has.

    python test/run_as.py haswell .venv/bin/pytest -q test/runtime

takes this processor for one with fewer features, where it has all of the other's. A machine is a line
of `MACHINES`; what else may differ there (one CPU, SIGINT ignored, no /dev/shm, a home that can't be
written to) `docs/testing.md` has commands for.
"""

from __future__ import annotations

import os
import sys
from typing import NamedTuple


class Machine(NamedTuple):
    """What each library is told: a kind of processor as in LAMINA_PROCESSOR, the names that OpenBLAS
    and XLA have for the widest code that it runs, and how NumPy's names of what it lacks begin."""

    processor: str
    openblas: str
    xla: str
    not_numpy: tuple[str, ...]


_ICELAKE = "x86-64-v4+avx512bitalg+avx512ifma+avx512vbmi+avx512vbmi2+avx512vnni+avx512vpopcntdq+gfni"

MACHINES = {
    "haswell": Machine("x86-64-v3", "Haswell", "AVX2", ("X86_V4", "AVX512")),
    "alder-lake": Machine("x86-64-v3+avxvnni+gfni", "Haswell", "AVX2", ("X86_V4", "AVX512")),
    "skylake-server": Machine("x86-64-v4", "SkylakeX", "AVX512", ("AVX512_ICL", "AVX512_SPR")),
    "ice-lake": Machine(_ICELAKE, "SkylakeX", "AVX512_VNNI", ("AVX512_SPR",)),
    "zen5": Machine(f"{_ICELAKE}+avx512bf16+avxvnni", "SkylakeX", "AVX512_BF16", ("AVX512_SPR",)),
}


def environment(machine: Machine) -> dict[str, str]:
    """The variables that make a process of tests take this processor for another machine's."""
    from numpy._core._multiarray_umath import __cpu_dispatch__ as known  # warns of other names

    lacks = [name for name in known if name.startswith(machine.not_numpy)]
    return {
        "LAMINA_TEST_PROCESSOR": machine.processor,
        "LAMINA_TEST_XLA_FLAGS": f"--xla_cpu_max_isa={machine.xla}",
        "OPENBLAS_CORETYPE": machine.openblas,
        "NPY_DISABLE_CPU_FEATURES": " ".join(lacks),
    }


def main() -> None:
    """Becomes the command, in that environment."""
    name, *command = sys.argv[1:] or [""]
    if name not in MACHINES or not command:
        sys.exit(f"usage: run_as.py ({' | '.join(MACHINES)}) command...")
    os.execvpe(command[0], command, os.environ | environment(MACHINES[name]))


if __name__ == "__main__":
    main()
