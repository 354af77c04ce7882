"""What docs/cuda-counts.md says of lamina's kernels holds: instructions, sectors, conflicts. Some rows by default, all
with LAMINA_TEST_EXAMPLES."""

from __future__ import annotations

import os

import counts
import pytest
from counted_programs import COUNTED
from support import ptx

_MARGIN = 1.05
_ARCHITECTURES = ("sm_80", "sm_90a")
_TABLE = {
    tuple(cells[:2]): cells[2:]
    for cells in (line.strip("| ").split(" | ") for line in counts.PAGE.read_text().splitlines())
    if len(cells) == 10 and cells[1] in _ARCHITECTURES
}
_EACH = bool(os.environ.get("LAMINA_TEST_EXAMPLES"))
_ROWS = [
    (one, arch)
    for n, one in enumerate(COUNTED)
    for m, arch in enumerate(_ARCHITECTURES)
    if _EACH or (one.operation != "product" and n % 2 == m)
]


def test_every_row_is_in_the_table() -> None:
    assert list(_TABLE) == [(one.name, arch) for one in COUNTED for arch in _ARCHITECTURES]


@pytest.mark.parametrize("one, arch", _ROWS, ids=[f"{one.name} {arch}" for one, arch in _ROWS])
def test_kernels_do_no_more(one: counts.Counted, arch: str) -> None:
    said = [float(cell.replace(",", "")) for cell in _TABLE[one.name, arch]]
    found = counts.of_lamina(one, arch)
    results = counts.results_of(one)
    for kind, place in ((ptx.WARPS, 0), (ptx.SECTORS, 3), (ptx.CONFLICTS, 6)):
        assert 1000 * found[kind] / results <= said[place] * _MARGIN, kind
