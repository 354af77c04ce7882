# RUN: env LAMINA_NUM_CPU_DEVICES=4 %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.collective_gathers: all_gather and reduce_scatter."""

from print_ir import print_ir

import lamina
from lamina import P, lax

MESH = lamina.make_mesh((2, 2), ("i", "j"))


def on_mesh(fun, *in_specs, out_specs):
    return lamina.shard_map(fun, MESH, in_specs, out_specs, check_vma=False)


# CHECK-LABEL: TEST: all_gather
# CHECK: "stablehlo.all_gather"
# CHECK-SAME: all_gather_dim = 0
# CHECK-SAME{LITERAL}: replica_groups = dense<[[0, 1], [2, 3]]>
@print_ir("f32[4]")
def all_gather(x):
    return on_mesh(lambda b: lax.all_gather(b, "j", tiled=True), P("j"), out_specs=P())(x)


# CHECK-LABEL: TEST: psum_scatter
# CHECK: "stablehlo.reduce_scatter"
# CHECK-SAME: scatter_dimension = 0
@print_ir("f32[4,2]")
def psum_scatter(x):
    return on_mesh(lambda b: lax.psum_scatter(b, "j", tiled=True), P(), out_specs=P("j"))(x)
