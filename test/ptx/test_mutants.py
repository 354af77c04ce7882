"""A kernel of lamina's without one of its barriers, waits or fences is refused in the emulator of PTX, or gives other
results: each is needed, and the emulator sees it. A few classes are tried by default, all with LAMINA_TEST_EXAMPLES."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

import numpy as np
import pytest
from support import cuda_classes
from support.ptx import PtxError

_FEW = {
    "loops: softmax": ("sm_80", 0), "ops: sort_long": ("sm_80", 0), "ops: lu": ("sm_80", 0),
    "ops: look_back": ("sm_80", 0), "products: f16_odd": ("sm_80", 0), "attention: causal": ("sm_80", 0),
    "wgmma: plain": ("sm_90a", 5), "wgmma: conv": ("sm_90a", 7),
}  # fmt: skip
"""Where each is tried by default, and how many of its mutants do no harm: the first wait for a stage that nobody used,
what the last round lets go that no other round takes, the wait for all groups but one where there is but one."""
_ALL = [one for one in cuda_classes.classes() if not one.name.startswith("benchmarks")]  # which have no values
_TRIED = [
    (one, arch)
    for one in _ALL
    for arch in ("sm_80", "sm_90a")
    if (os.environ.get("LAMINA_TEST_EXAMPLES") and not ("wgmma" in one.name and arch == "sm_80"))
    or _FEW.get(one.name, ("", 0))[0] == arch
]
_ORDERS = re.compile(
    r"\s*(@!?%p\d+\s+)?(bar\.(warp\.)?sync|barrier\.cta\.sync|cp\.async\.(wait|commit)_group|fence\.proxy\.async|"
    r"wgmma\.(fence|commit_group|wait_group)|mbarrier\.arrive)"
)
_WAIT = re.compile(r"mbarrier\.try_wait\S*\s+(\w+),[^;]*;")
_PLACE = re.compile(r"%\w+|\bk_\w+|\+\d+")
_IN_FURTHER_ROUNDS = {
    "mbarrier.arrive.shared.b64 \t_, [__];", "wgmma.wait_group.sync.aligned \t1;",
    "mbarrier.try_wait.parity.shared.b64 P1, [_], 1, 10000000;",
}  # fmt: skip
"""What is needed only where stages come round: some classes are too small for it, those tried by default are not."""


def _mutants(text: str) -> Iterator[tuple[str, str]]:
    """What is gone, and the text without; who no longer waits goes on at once. (`fence.mbarrier_init` is for the other
    blocks of a cluster: Triton's kernels have none.)"""
    lines = text.splitlines()
    for n, line in enumerate(lines):
        if _ORDERS.match(line):
            spoiled: list[str] = []
        elif _WAIT.search(line):
            spoiled = [_WAIT.sub(r"setp.eq.u32 \1, 0, 0;", line)]
        else:
            continue
        yield f"line {n + 1}: {line.strip()}", "\n".join([*lines[:n], *spoiled, *lines[n + 1 :]])


@pytest.mark.parametrize("one, arch", _TRIED, ids=[f"{one.name} {arch}" for one, arch in _TRIED])
def test_each_is_needed(one: cuda_classes.Class, arch: str) -> None:
    """In at least one of the copies that unrolled loops have of it."""
    program = one.program(arch)
    right, missed, seen = program.run(), [], set()
    for symbol, kernel in program.kernels.items():
        for what, text in _mutants(kernel.ptx):
            kind = _PLACE.sub("_", what.split(": ", 1)[1])
            try:
                found = program.run({symbol: text})
            except PtxError:
                seen.add(kind)
                continue
            if all(np.array_equal(f, r, equal_nan=f.dtype.kind in "fc") for f, r in zip(found, right, strict=True)):
                missed.append((kind, f"{symbol}, {what}"))
            else:
                seen.add(kind)
    assert {kind for kind, _ in missed} - seen <= _IN_FURTHER_ROUNDS, missed
    if one.name in _FEW and _FEW[one.name][0] == arch:
        assert len(missed) == _FEW[one.name][1], missed


def test_kernels_with_barriers_are_tried() -> None:
    assert set(_FEW) <= {one.name for one in _ALL}
