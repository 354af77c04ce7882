"""Fill a padded copy only around what is copied, and make what is only made to be copied where it lies.

    t[h, w] = max(x[h, w], 0)                            p[0, w] = 0; p[9, w] = 0
    p[h, w] = 0; p[1 + h, 1 + w] = t[h, w]         ->    p[1 + h, 0] = 0; p[1 + h, 9] = 0
    c[h, w] += p[h + i, w + j] * k[i, j]                 p[1 + h, 1 + w] = max(x[h, w], 0)
                                                         c[h, w] += p[h + i, w + j] * k[i, j]

For copies that are not made part by part: those of which no part fits, and those of what costs too much
to be computed again where two parts meet. Each element is written once.

Leaves alone copies of less than an eighth of the second cache, for which more loops are not worth it, and those spread
by steps.

example: test/passes/linalg/schedule/pad_around.mlir
"""

from __future__ import annotations

from lamina.dialects.vendors import ir
from lamina.passes.framework.base import Pass
from lamina.passes.framework.machine_attribute import machine_of
from lamina.passes.kernels.cpu.gemm.epilogue import can_be_done_together
from lamina.passes.linalg.analysis.structure import generics_on_buffers, is_buffer, read_generic
from lamina.passes.linalg.schedule.padded_window import PaddedWindow, maker_of
from lamina.passes.linalg.schedule.padding import Padding, bytes_of, find_padding

_LEAST = 1 / 8  # shape: of the second cache


class PadAround(Pass):
    """See the module's docstring."""

    def run(self, module: ir.Module) -> None:
        for op in generics_on_buffers(module):
            if op.parent.name != "func.func" or len(op.operands) < 2:
                continue
            reader = read_generic(op)
            for value in dict.fromkeys(filter(is_buffer, reader.inputs)):
                padding = find_padding(value, reader)
                if padding is None or any(step != 1 for step in padding.steps):
                    continue
                if bytes_of(value) >= _LEAST * machine_of(op).l2_bytes:
                    _rewrite(value, padding)
                    self.count("padded around")


def _rewrite(padded: ir.Value, padding: Padding) -> None:
    copy = padding.ops[1]
    maker = maker_of(padding)
    if maker is not None and not can_be_done_together([maker.generic.op], copy):
        maker = None
    shape = list(ir.MemRefType(padded.type).shape)
    with ir.InsertionPoint(copy), copy.location:
        PaddedWindow(padding, shape, padded, [0] * len(shape), shape, maker).emit()
    source, view = copy.operands
    makers = () if maker is None else (maker.generic.op,)
    for erased in (copy, view.owner, padding.ops[0], *padding.ops[2:], *makers):
        erased.erase()
    if not isinstance(source.owner, ir.Block) and not list(source.uses):
        source.owner.erase()
