"""Writes docs/cuda-counts.md: what lamina's kernels do for a result, and what Triton's do.

    .venv/bin/python test/ptx/counts.py [WORD ...]    # prints the rows with a word in them; without, writes the page

Counted in the emulator of PTX, in some blocks of each kernel. Takes some minutes.
"""

from __future__ import annotations

import datetime
import math
import sys
import unittest.mock
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "backends"))
sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

import kept_ptx
import numpy as np
from counted_programs import COUNTED, Counted
from support import ptx
from support.cuda_program import Program
from support.ptx.launch import Program as Emulated

import lamina
import lamina.numpy as jnp

PAGE = Path(__file__).parents[2] / "docs" / "cuda-counts.md"
_BLOCKS = 6  # that are run of a kernel
_HEAD = """# What kernels do for a result

Counted in the emulator of PTX (`test/support/ptx`), in some blocks of each kernel: instructions that warps execute,
sectors of 32 bytes that they touch in global memory, and how often lanes meet in a bank of shared memory; for 1,000
results, with Triton {version}'s kernels beside (of several tilings, the one with the fewest instructions).
**This is no measurement of time**: an instruction of PTX may be several of the machine's, and nothing here says what
waits for what. Triton's exp is one product and one instruction, wrong by |x| units in the last place; lamina's of
f32 is eight instructions and wrong by two, which is what its first rows and softmax of f32 have more. In rows that end
in "libdevice" Triton's kernel has exp from there and an exact quotient, and is as exact as lamina's. Softmax of fp16
is rounded to it after each step, as on the CPU; Triton's is rounded once, at the end. Of the
machine's instructions (sm_90a, as nvdisasm shows them) `div.rn.f32` is eight where numbers are not extreme, Triton's
`div.full.f32` eight, its `ex2.approx.f32` four and lamina's `ex2.approx.ftz.f32` one. Products of sm_80 are in tiles
of 128 x 128, which by the tilings' model end sooner at this size than Triton's of 128 x 256, and read more. The page is
written by `test/ptx/counts.py`, last on {date}.

| operation | GPU | instructions | Triton | ratio | sectors | Triton | ratio | conflicts | Triton |
|---|---|--:|--:|--:|--:|--:|--:|--:|--:|
"""
_MEASURED = (ptx.WARPS, ptx.SECTORS, ptx.CONFLICTS)


def _chain(x: Any, y: Any) -> Any:
    a, b = x.astype(np.float32), y.astype(np.float32)
    return (jnp.exp(-a * a) * b + a).astype(x.dtype)


def _layer_norm(x: Any, w: Any, b: Any) -> Any:
    x = x.astype(np.float32)
    apart = x - x.mean(1, keepdims=True)
    scale = lamina.lax.rsqrt((apart * apart).mean(1, keepdims=True) + 1e-5)
    return (apart * scale * w + b).astype(w.dtype)


def _attention(q: Any, k: Any, v: Any) -> Any:
    q, k, v = (x[None].transpose(0, 2, 1, 3) for x in (q, k, v))
    return lamina.nn.dot_product_attention(q, k, v)[0]


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "chain": _chain,
    "softmax": lambda x: lamina.nn.softmax(x, axis=1),
    "layer norm": _layer_norm,
    "sum of rows": lambda x: x.sum(1),
    "sum of columns": lambda x: x.sum(0),
    "transpose": lambda x: x.T,
    "product": jnp.matmul,
    "attention": _attention,
}


@contextmanager
def _counting() -> Iterator[Counter[str]]:
    """What launches count, those of the blocks that are not run as those of the others."""
    found: Counter[str] = Counter()
    whole = Emulated.launch

    def launch(
        self: Emulated, name: str, grid: Any, block: Any, arguments: Any, shared: int = 0, *_: Any, **__: Any
    ) -> Counter[str]:
        count = math.prod(grid)
        blocks = np.unique(np.linspace(0, count - 1, _BLOCKS).astype(int))
        counts = whole(self, name, grid, block, arguments, shared, measures=True, blocks=blocks)  # fmt: skip
        for kind in _MEASURED:
            found[kind] += counts[kind] * count / blocks.size  # type: ignore[assignment]
        return counts

    with unittest.mock.patch.object(Emulated, "launch", launch):
        yield found


def of_lamina(one: Counted, arch: str) -> Counter[str]:
    """What lamina's kernels do."""
    arrays = _arrays(one)
    with _counting() as found:
        Program(FUNCTIONS[one.operation], *arrays[:-1], arch=arch).run()
    return found


def of_triton(one: Counted, arch: str) -> Counter[str]:
    """What Triton's kernel does, the one with the fewest instructions."""
    counts = []
    for program in one.triton:
        with _counting() as found:
            kept_ptx.run_triton(program, int(arch[3:5]))
        counts.append(found)
    return min(counts, key=lambda each: each[ptx.WARPS])


def results_of(one: Counted) -> int:
    """How many results there are."""
    return int(_arrays(one)[-1].size)


def _arrays(one: Counted) -> list[np.ndarray]:
    given = one.triton[0].arguments(np.random.default_rng(0))
    return [a for a in given if isinstance(a, np.ndarray)]


def _row(one: Counted, arch: str) -> str:
    own, other, results = of_lamina(one, arch), of_triton(one, arch), results_of(one)
    cells = [one.name, arch]
    for kind in _MEASURED:
        mine, theirs = (1000 * counts[kind] / results for counts in (own, other))
        cells += [_number(mine), _number(theirs)]
        if kind != ptx.CONFLICTS:
            cells.append(f"{mine / theirs:.2f}")
    return f"| {' | '.join(cells)} |"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == 0 else f"{value:.3g}"


def main(*words: str) -> None:
    """Writes the page, or prints rows."""
    rows = []
    for one in COUNTED:
        for arch in ("sm_80", "sm_90a"):
            if all(word in f"{one.name} {arch}" for word in words):
                rows.append(_row(one, arch))
                print(rows[-1], flush=True)
    if not words:
        version = kept_ptx.kept("triton")["triton"]
        today = datetime.date.today().isoformat()
        PAGE.write_text(_HEAD.format(version=version, date=today) + "\n".join(rows) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
