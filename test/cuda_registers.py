"""What each class of kernel for GPUs takes and does, by architecture: the table docs/cuda-registers.md.

    python test/cuda_registers.py [WORD ...]      # all classes, or those with a word in their name

writes it anew (`make gpu-registers`). `test_cuda_registers.py` holds it: no kernel may take more than it
says, or spill, or lose an instruction that makes it fast.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "backends"))

import ml_dtypes
import numpy as np
import test_cuda
import test_cuda_attention
import test_cuda_ops
import test_cuda_products
import test_cuda_wgmma
from simt_program import Program

import lamina
import lamina.numpy as jnp

ARCHITECTURES = ("sm_80", "sm_90a", "sm_100a")
TABLE = Path(__file__).parents[1] / "docs" / "cuda-registers.md"
_GRANULE = 8  # registers are given to threads by eights
_BF16 = ml_dtypes.bfloat16

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
    """The most that a kernel of a class takes: registers of a thread, bytes a block shares; and what
    its PTX has of `INSTRUCTIONS`, with the tilings of products."""

    registers: int
    shared: int
    instructions: str


@dataclass(frozen=True)
class Class:
    """A class of kernel: a program with at least one."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


def _of(dtype: Any, *shape: int) -> Any:
    return lamina.ShapeDtypeStruct(shape, dtype)


def _attend(q, k, v):
    return lamina.nn.dot_product_attention(q, k, v, is_causal=True)


_ROWS = _of(np.float32, 65536, 1024)
# At the sizes that `make gpu-check` measures.
BENCHMARKS: dict[str, tuple[Callable, tuple]] = {
    "elementwise": (lambda x: jnp.tanh(x) * 2 + x, (_ROWS,)),
    "softmax": (lambda x: lamina.nn.softmax(x, axis=1), (_ROWS,)),
    "layernorm": (
        lambda x: (x - x.mean(1, keepdims=True)) / (x.std(1, keepdims=True) + 1e-5), (_ROWS,)),
    "sum of rows": (lambda x: x.sum(1), (_ROWS,)),
    "sum of columns": (lambda x: x.sum(0), (_ROWS,)),
    "sum": (jnp.sum, (_ROWS,)),
    "matmul bf16": (jnp.matmul, (_of(_BF16, 8192, 8192),) * 2),
    "matmul f8": (jnp.matmul, (_of(ml_dtypes.float8_e4m3fn, 4096, 4096),) * 2),
    "matmul f32": (jnp.matmul, (_of(np.float32, 4096, 4096),) * 2),
    "attention": (_attend, (_of(_BF16, 4, 4096, 16, 128),) * 3),
    "sort": (jnp.sort, (_of(np.float32, 1 << 24),)),
    "cumulative sum": (jnp.cumsum, (_of(np.float32, 1 << 24),)),
}  # fmt: skip


def classes() -> list[Class]:
    """Every class of kernel that the tests run, and the benchmarks."""
    groups: dict[str, dict[str, tuple]] = {
        "loops": test_cuda.KERNELS,
        "ops": test_cuda_ops.OPS,
        "products": {name: row[0] for name, row in test_cuda_products.KERNELS.items()},
        "attention": test_cuda_attention.PROGRAMS,
        "wgmma": {name: row[:2] for name, row in test_cuda_wgmma.PRODUCTS.items()},
        "benchmarks": BENCHMARKS,
    }
    return [Class(f"{g}: {n}", *row) for g, rows in groups.items() for n, row in rows.items()]


def taken(of: Class, arch: str) -> Taken:
    """What the kernels of a class take; fails where one spills or keeps arrays in local memory."""
    small = of.name.startswith("wgmma")
    with test_cuda_wgmma.small_tiles() if small else contextlib.nullcontext():
        with lamina.enable_x64("f64" in of.name):
            program = Program(of.function, *of.arguments, arch=arch)
    registers = shared = 0
    for kernel in program.kernels.values():
        assert f".target {arch}\n" in kernel.ptx
        code, found = kernel.cubin(program.target)
        assert code.startswith(b"\x7fELF")
        assert set(found) == {launch.name for launch in kernel.launches}
        for launch in kernel.launches:
            used = found[launch.name]
            assert used.spill_stores == used.spill_loads == used.stack_bytes == 0, (of.name, used)
            assert used.registers * np.prod(launch.block) <= 65536, (of.name, used)
            registers = max(registers, -(-used.registers // _GRANULE) * _GRANULE)
            shared = max(shared, used.shared_bytes + launch.dynamic_shared_bytes)
    ptx = "".join(kernel.ptx for kernel in program.kernels.values())
    texts = "".join(kernel.texts["gpu"] for kernel in program.kernels.values())
    tilings = [f"({tiling})" for tiling in dict.fromkeys(re.findall(r'lamina.tiling = "([^,"]+)', texts))]
    seen = [name for name, pattern in INSTRUCTIONS.items() if re.search(pattern, ptx)]
    return Taken(registers, shared, " ".join(seen + tilings))


def read() -> dict[str, dict[str, Taken]]:
    """class -> architecture -> what the table says."""
    found = {}
    for line in TABLE.read_text().splitlines():
        if line.startswith("| ") and not line.startswith("| class"):
            name, *numbers, same = line.strip("| ").split(" | ")
            names = same.split("; ") * (3 if ";" not in same else 1)
            found[name] = {
                arch: Taken(int(numbers[n]), int(numbers[n + 3]), names[n].replace("–", ""))
                for n, arch in enumerate(ARCHITECTURES)
            }
    return found


def _row(number: int) -> str:
    one = classes()[number]
    found = [astuple(taken(one, arch)) for arch in ARCHITECTURES]
    registers, shared, names = zip(*found)
    instructions = [each or "–" for each in (names[:1] if len(set(names)) == 1 else names)]
    return f"| {' | '.join(map(str, [one.name, *registers, *shared, '; '.join(instructions)]))} |"


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
    TABLE.write_text(f"""# What kernels for GPUs take

By class of kernel and architecture, as nvJitLink says: the registers of a thread, rounded up to eights,
and the bytes of shared memory of a block, the most of any kernel of the class. None spills. Then what
the PTX has of what makes kernels fast, accesses of 16 and 8 bytes and instructions; where architectures
differ, for each.
`make gpu-registers` writes this page, `test_cuda_registers.py` holds it. "Benchmarks" are at the sizes
that `make gpu-check` measures.

| class | {" | ".join(ARCHITECTURES)} | shared: {" | ".join(ARCHITECTURES)} | PTX |
|---|{"--:|" * 2 * len(ARCHITECTURES)}---|
{chr(10).join(rows)}
""")


if __name__ == "__main__":
    main()
