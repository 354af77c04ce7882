# RUN: env LAMINA_NUM_CPU_DEVICES=4 %PYTHON %s | FileCheck %s
"""Lowering of lamina.lax.terms: casts are nothing, a sum of terms is an all_reduce."""

from print_ir import print_ir

import lamina
from lamina import P, lax
from lamina.sharding import AxisType

MESH = lamina.make_mesh((4,), ("i",), axis_types=(AxisType.Explicit,))


def on_mesh(fun):
    return lamina.shard_map(fun, mesh=MESH, in_specs=P("i"), out_specs=P("i"))


# CHECK-LABEL: TEST: casts
# CHECK: @main
# CHECK-NOT: "stablehlo
# CHECK: return
@print_ir("f32[4,4]")
def casts(x):
    fun = lamina.shard_map(
        lambda b: lax.pcast(b, "i", to="unreduced"), mesh=MESH, in_specs=P("i"), out_specs=P(unreduced={"i"})
    )
    return fun(x)


# CHECK-LABEL: TEST: sum_of_terms
# CHECK: "stablehlo.all_reduce"
# CHECK-SAME{LITERAL}: replica_groups = dense<[[0, 1, 2, 3]]>
# CHECK: stablehlo.add
@print_ir("f32[4,4]")
def sum_of_terms(x):
    return on_mesh(lambda b: b * lax.psum(lax.pcast(b, "i", to="unreduced"), "i"))(x)


# CHECK-LABEL: TEST: counted_once
# CHECK: "stablehlo.all_gather"
# CHECK-NOT: all_reduce
# CHECK: return
@print_ir("f32[4,4]")
def counted_once(x):
    return on_mesh(lambda b: b * lax.all_gather(b, "i", tiled=True, to="reduced"))(x)
