# RUN: env LAMINA_NUM_CPU_DEVICES=4 %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.collective_exchanges: all_to_all."""

from print_ir import print_ir

import lamina
from lamina import P, lax

MESH = lamina.make_mesh((2, 2), ("i", "j"))


def on_mesh(fun, *in_specs, out_specs):
    return lamina.shard_map(fun, MESH, in_specs, out_specs, check_vma=False)


# CHECK-LABEL: TEST: all_to_all
# CHECK: "stablehlo.all_to_all"
# CHECK-SAME: concat_dimension = 1
# CHECK-SAME: split_dimension = 0
@print_ir("f32[4,4]")
def all_to_all(x):
    swap = on_mesh(
        lambda b: lax.all_to_all(b, "j", 0, 1, tiled=True), P(None, "j"), out_specs=P("j")
    )
    return swap(x)
