"""What the emulator knows of `llvm.inline_asm` and `llvm.call_intrinsic`: instructions that no op stands for."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from support.simt import emulator as simt
from support.simt import hopper as simt_hopper
from support.simt import wgmma as simt_wgmma

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "llvm.nvvm.ex2.approx.ftz.f": np.exp2,
    "llvm.nvvm.mul.rn.f": np.multiply,
    "llvm.nvvm.rcp.approx.ftz.f": lambda x: 1 / x,
}
_PRODUCT = re.compile(
    r"\{ .reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned.m64n(\d+)k16.f32.(b?f16).(b?f16) "
    r"\{(.*)\}, \{(.*)\}, \$(\d+), p, 1, 1, ([01]); \}"
)


def assembly(launch: Any, op: Any, operands: list[Any], mask: np.ndarray) -> list[Any]:
    """`llvm.inline_asm`. What it gives of several operands is a list of those."""
    text = op.attributes["asm_string"].value
    if not mask.any():
        return [operands]
    if found := _PRODUCT.fullmatch(text):
        n, kind, other, sums, left, right, across = found.groups()
        count = int(n) // 2
        assert kind == other and sums == ", ".join(f"${i}" for i in range(count))
        assert left == ", ".join(f"${2 * count + i}" for i in range(4)) and right == f"{2 * count + 4}"
        return [simt_wgmma.multiply_registers(launch, op, operands, mask, int(n), kind, across == "1")]
    if text == "wgmma.fence.sync.aligned;":
        launch.hopper.fenced = True
    elif found := re.fullmatch(r"wgmma.wait_group.sync.aligned (\d);", text):
        simt_wgmma.wait_for(launch, int(found[1]))
        operands = [o.waited() if isinstance(o, simt_hopper.Pending) else o for o in operands]
    elif text:
        raise simt.SimtError(f"the emulator does not know {text}")
    return [operands]


def intrinsic(launch: Any, op: Any, operands: list[Any], mask: np.ndarray) -> list[Any]:
    """`llvm.call_intrinsic`, of functions of f32."""
    function = _FUNCTIONS[op.attributes["intrin"].value]
    return [np.asarray(function(*map(np.asarray, operands)), np.float32)]


OPS: dict[str, Callable[..., list[Any]]] = {"llvm.inline_asm": assembly, "llvm.call_intrinsic": intrinsic}
