"""What each class of kernel for GPUs takes and does, by architecture: the table docs/cuda-registers.md.

    python test/cuda_registers.py [WORD ...]      # all classes, or those with a word in their name

writes it anew (`make gpu-registers`). `test_cuda_registers.py` holds it: no kernel may take more than it
says, or spill, or lose an instruction that makes it fast.
"""

from __future__ import annotations

import re
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np
from support.cuda_classes import Class, classes
from support.cuda_sass import Machine, disassembled

ARCHITECTURES = ("sm_80", "sm_90a", "sm_100a")
TABLE = Path(__file__).parents[1] / "docs" / "cuda-registers.md"
_GRANULE = 8  # registers are given to threads by eights

_16 = r"\.global[.\w]*\.(?:v4\.b32|v2\.b64)"
_8 = r"\.global[.\w]*\.(?:v4\.b16|v2\.b32)"
INSTRUCTIONS = {
    "ld16": rf"\bld{_16}", "st16": rf"\bst{_16}", "ld8": rf"\bld{_8}", "st8": rf"\bst{_8}",
    "shfl": r"\bshfl\.sync", "bar": r"\bbar(?:rier)?\.(?:cta\.)?sync", "atom": r"\b(?:atom|red)\.",
    "cp.async": r"\bcp\.async\.c[ag]\.", "bulk": r"\bcp\.async\.bulk\.tensor",
    "ldmatrix": r"\bldmatrix\.sync", "mma": r"\bmma\.sync", "wgmma": r"\bwgmma\.mma_async",
}  # fmt: skip
"""What makes kernels fast, as PTX has it: accesses of 16 and 8 bytes, and others by name."""


@dataclass(frozen=True)
class Taken:
    """The most that a kernel of a class takes: registers of a thread, bytes a block shares, the machine's
    instructions; what its PTX has of `INSTRUCTIONS`, with the tilings of products, and the machine's tensor
    instructions."""

    registers: int
    shared: int
    code: int
    instructions: str
    tensor: str


def taken(of: Class, arch: str, looks: bool = True) -> Taken:
    """What the kernels of a class take; fails where one spills, keeps arrays in local memory, has products of
    warpgroups one after the other, or where the assembler made of an instruction something slower than it says.
    `looks`: whether they are disassembled."""
    program = of.program(arch)
    registers = shared = 0
    machine = Machine(0, ())
    for kernel in program.kernels.values():
        assert f".target {arch}\n" in kernel.ptx
        code, found = kernel.cubin(program.target)
        assert code.startswith(b"\x7fELF")
        assert set(found) == {launch.name for launch in kernel.launches}
        if looks:
            machine = machine.joined(disassembled(code, set(found)))
        for launch in kernel.launches:
            used = found[launch.name]
            assert used.spill_stores == used.spill_loads == used.stack_bytes == 0, (of.name, used)
            assert not used.serialized, of.name
            assert used.registers * np.prod(launch.block) <= 65536, (of.name, used)
            registers = max(registers, -(-used.registers // _GRANULE) * _GRANULE)
            shared = max(shared, used.shared_bytes + launch.dynamic_shared_bytes)
    ptx = "".join(kernel.ptx for kernel in program.kernels.values())
    texts = "".join(kernel.texts["gpu"] for kernel in program.kernels.values())
    tilings = [f"({tiling})" for tiling in dict.fromkeys(re.findall(r'lamina.tiling = "([^,"]+)', texts))]
    seen = [name for name, pattern in INSTRUCTIONS.items() if re.search(pattern, ptx)]
    assert not looks or not machine.lacks(seen), (of.name, arch, machine.lacks(seen))
    return Taken(registers, shared, machine.instructions, " ".join(seen + tilings), machine.tensor)


def read() -> dict[str, dict[str, Taken]]:
    """class -> architecture -> what the table says."""
    found = {}
    for line in TABLE.read_text().splitlines():
        if line.startswith("| ") and not line.startswith("| class"):
            name, *numbers, ptx, sass = line.strip("| ").split(" | ")
            texts = [[each.replace("–", "") for each in _by_architecture(cell)] for cell in (ptx, sass)]
            found[name] = {
                arch: Taken(*(int(numbers[n + 3 * kind]) for kind in range(3)), *(each[n] for each in texts))
                for n, arch in enumerate(ARCHITECTURES)
            }
    return found


def _by_architecture(cell: str) -> list[str]:
    return cell.split("; ") if ";" in cell else [cell] * len(ARCHITECTURES)


def _row(number: int) -> str:
    one = classes()[number]
    found = [astuple(taken(one, arch)) for arch in ARCHITECTURES]
    registers, shared, code, *texts = zip(*found)
    cells = [[each or "–" for each in (names[:1] if len(set(names)) == 1 else names)] for names in texts]
    numbers = [*registers, *shared, *code]
    return f"| {' | '.join(map(str, [one.name, *numbers, *map('; '.join, cells)]))} |"


def main() -> None:
    """Writes the table, or the rows of some classes."""
    words = sys.argv[1:]
    names = [one.name for one in classes()]
    old = {} if not words else {
        line.split(" | ")[0].strip("| "): line
        for line in TABLE.read_text().splitlines() if line.startswith("| ")
    }  # fmt: skip
    wanted = [n for n, name in enumerate(names)
              if name not in old or any(word in name for word in words)]  # fmt: skip
    with ProcessPoolExecutor(2) as pool:
        new = dict(zip(wanted, pool.map(_row, wanted)))
    rows = [new[n] if n in new else old[name] for n, name in enumerate(names)]
    columns = " | ".join(ARCHITECTURES)
    TABLE.write_text(f"""# What kernels for GPUs take

By class of kernel and architecture, as nvJitLink says: the registers of a thread, rounded up to eights,
the bytes of shared memory of a block and, as nvdisasm shows it, how many of the machine's instructions its code has,
the most of any kernel of the class. None spills or uses local memory. Then what
the PTX has of what makes kernels fast, accesses of 16 and 8 bytes and instructions, all of which the machine's
code has, too (`test/support/cuda_sass.py`); and of that the tensor instructions, and CALL where it calls a function,
as for quotients of extreme numbers. Where architectures differ, for each. (Of f8 for `mma.sync` the assembler makes
f16 on these architectures, hence HMMA.)
`make gpu-registers` writes this page, `test_cuda_registers.py` holds it. "Benchmarks" are at the sizes
that `make gpu-check` measures.

| class | {columns} | shared: {columns} | code: {columns} | PTX | SASS |
|---|{"--:|" * 3 * len(ARCHITECTURES)}---|---|
{chr(10).join(rows)}
""")


if __name__ == "__main__":
    main()
