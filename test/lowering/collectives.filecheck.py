# RUN: env LAMINA_NUM_CPU_DEVICES=4 %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.collectives: on a mesh to StableHLO's collectives, under vmap to data
movement."""

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
