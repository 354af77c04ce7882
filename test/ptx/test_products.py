"""Products in tiles so large that what a thread writes of them is written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.cuda_program import Program

import lamina.numpy as jnp
from lamina.passes.kernels.gpu.gemm import choice
from lamina.passes.kernels.gpu.gemm.tiling import Tiling, Unit


@pytest.mark.parametrize("rows", [256, 200])
def test_results_written_out(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    def chosen(sizes: Any, unit: Unit, arch: str, *_: Any) -> Tiling:
        return Tiling(unit, 128, 128, 32, 3, 1)

    monkeypatch.setattr(choice, "choose_tiling", chosen)
    random = np.random.default_rng(0)
    x, y = (random.normal(size=shape).astype(np.float16) for shape in ((rows, 96), (96, 384)))
    program = Program(jnp.matmul, x, y, arch="sm_80")
    (kernel,) = program.kernels.values()
    assert "128x128x32" in kernel.texts["gpu"]
    assert kernel.ptx.count("st.global.v2.b32") == 128 // 32 * 32 * 128 // 4 // 128
    (found,) = program.run()
    wanted = x.astype(np.float64) @ y.astype(np.float64)
    np.testing.assert_allclose(found.astype(np.float64), wanted, rtol=2e-3, atol=2e-2)
