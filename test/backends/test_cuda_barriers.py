"""Every barrier and every wait of every class of kernel for GPUs is needed: with any one gone, the
emulator finds a race. A few classes are tried by default, all with LAMINA_TEST_EXAMPLES."""

from __future__ import annotations

import os
import re

import pytest
from support.cuda_classes import Class, classes
from support.simt import emulator as simt

_ORDERS = re.compile(r"gpu\.barrier\b|nvgpu\.device_async_wait\b")

# By default: one of each kind.
_FEW = (
    "loops: softmax", "loops: layernorm", "loops: row_sum", "loops: rows_short", "loops: argmax_whole",
    "loops: columns", "loops: transpose", "ops: sort_long", "ops: radix_sort_bytes", "ops: scatter_add", "ops: fft",
    "ops: cholesky", "ops: triangular", "ops: lu", "ops: qr", "ops: qr_pivoting", "ops: tridiagonal_form",
    "ops: eigh", "ops: scan", "ops: look_back_reverse",
    "products: odd", "products: f16_transposed", "products: f16_odd",
    "control: recurrent", "attention: causal", "attention: f32_causal", "attention: f32_wide", "attention: tf32_causal",
    "attention: wide_odd", "attention gradient: tf32", "attention gradient: wide",
)  # fmt: skip
# wgmma's, which have more than barriers and waits, have tests of their own; benchmarks are too large.
_ALL = [one for one in classes() if not one.name.startswith(("wgmma", "attention wgmma", "benchmarks"))]
_TRIED = [one for one in _ALL if os.environ.get("LAMINA_TEST_EXAMPLES") or one.name in _FEW]

# The second half of its tile has no rows, so that nobody reads what the last barrier is for; what the
# first thread stores of a sum, it reads itself. Of others here, that a branch is not taken makes it so.
_NEEDLESS = {
    "products: complex": 1, "control: recurrent": 1, "control: recurrent_odd": 1, "control: recurrent_columns": 1,
    "control: recurrent_wide": 1, "control: power": 2, "control: branches_of_a_block": 7, "control: nested": 7,
    "control: unsigned": 3,
}  # fmt: skip


@pytest.mark.parametrize("one", _TRIED, ids=lambda one: one.name)
def test_every_barrier_and_wait_is_needed(one: Class) -> None:
    program, needless = one.program(), 0
    for symbol, kernel in program.kernels.items():
        lines = kernel.texts["gpu"].split("\n")
        for place in [n for n, line in enumerate(lines) if _ORDERS.search(line)]:
            try:
                program.run({symbol: "\n".join(lines[:place] + lines[place + 1 :])})
            except simt.SimtError as error:
                assert re.search("race|out of the bounds", str(error))
            else:
                needless += 1
    assert needless == _NEEDLESS.get(one.name, 0)


def test_kernels_with_barriers_are_tried() -> None:
    assert set(_FEW) <= {one.name for one in _ALL}
