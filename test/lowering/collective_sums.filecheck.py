# RUN: env LAMINA_NUM_CPU_DEVICES=4 %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.collective_sums: all_reduce on a mesh, a reduction under vmap."""

import numpy as np
from print_ir import print_ir

import lamina
from lamina import P, lax

MESH = lamina.make_mesh((2, 2), ("i", "j"))


def on_mesh(fun, *in_specs, out_specs):
    return lamina.shard_map(fun, MESH, in_specs, out_specs, check_vma=False)


# CHECK-LABEL: TEST: psum
# CHECK: mhlo.num_partitions = 4
# CHECK: @main(%arg0: tensor<2x4xf32>
# CHECK: "stablehlo.all_reduce"
# CHECK-SAME{LITERAL}: replica_groups = dense<[[0, 2], [1, 3]]>
# CHECK: stablehlo.add
@print_ir("f32[4,4]")
def psum(x):
    return on_mesh(lambda b: lax.psum(b, "i"), P("i"), out_specs=P())(x)


# CHECK-LABEL: TEST: pmax
# CHECK: "stablehlo.all_reduce"
# CHECK-SAME{LITERAL}: replica_groups = dense<[[0, 1, 2, 3]]>
# CHECK: stablehlo.maximum
@print_ir("f32[4,4]")
def pmax(x):
    return on_mesh(lambda b: lax.pmax(b, ("i", "j")), P("i"), out_specs=P())(x)


# A cast of the type is nothing in the program; the sum of its transpose is an all_reduce.
# CHECK-LABEL: TEST: pvary
# CHECK: "stablehlo.all_reduce"
# CHECK-SAME{LITERAL}: replica_groups = dense<[[0, 2], [1, 3]]>
# CHECK-NOT: all_reduce
@print_ir("f32[4]", "f32[4]")
def pvary(w, x):
    def body(w, b):
        return lamina.grad(lambda w: (lax.pvary(w, "i")[:2] * b).sum())(w)

    return lamina.shard_map(body, MESH, (P(), P("i")), P())(w, x)


# Under vmap there are no collectives.
# CHECK-LABEL: TEST: lanes
# CHECK-NOT: partition
# CHECK: stablehlo.reduce
# CHECK: stablehlo.iota
@print_ir("f32[4,3]")
def lanes(x):
    return lamina.vmap(
        lambda v: lax.psum(v, "k") * lax.axis_index("k").astype(np.float32), axis_name="k"
    )(x)
