# RUN: env LAMINA_NUM_CPU_DEVICES=4 %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.collective_permutes: partition_id and collective_permute."""

from print_ir import print_ir

import lamina
from lamina import P, lax

MESH = lamina.make_mesh((2, 2), ("i", "j"))


def on_mesh(fun, *in_specs, out_specs):
    return lamina.shard_map(fun, MESH, in_specs, out_specs, check_vma=False)


# CHECK-LABEL: TEST: axis_index
# CHECK: stablehlo.partition_id
# CHECK: stablehlo.divide
# CHECK: stablehlo.remainder
@print_ir("i32[4]")
def axis_index(x):
    return on_mesh(lambda b: b + lax.axis_index("i"), P("i"), out_specs=P("i"))(x)


# CHECK-LABEL: TEST: ppermute
# CHECK: "stablehlo.collective_permute"
# CHECK-SAME{LITERAL}: source_target_pairs = dense<[[0, 1], [2, 3]]>
@print_ir("f32[4]")
def ppermute(x):
    return on_mesh(lambda b: lax.ppermute(b, "j", [(0, 1)]), P("j"), out_specs=P("j"))(x)
