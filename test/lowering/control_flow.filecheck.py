# RUN: %PYTHON %s | FileCheck %s
"""Lowering of cond, switch, while_loop, fori_loop and scan to stablehlo.case and stablehlo.while."""

from print_ir import print_ir

import lamina
import lamina.numpy as jnp
from lamina import lax


# False is branch 0. Values of the outside are used inside without being carried.
# CHECK-LABEL: TEST: cond
# CHECK: %[[P:.+]] = stablehlo.compare GT, %arg1
# CHECK: %[[I:.+]] = stablehlo.convert %[[P]] : (tensor<i1>) -> tensor<i32>
# CHECK: "stablehlo.case"(%[[I]]) ({
# CHECK-NEXT:   stablehlo.return %arg0
# CHECK-NEXT: }, {
# CHECK:   stablehlo.multiply %arg0, %arg0
# CHECK: }) : (tensor<i32>) -> tensor<3xf32>
@print_ir("f32[3]", "i32[]")
def cond(x, i):
    return lax.cond(i > 0, lambda v: v * v, lambda v: v, x)


# CHECK-LABEL: TEST: switch_clamps_its_index
# CHECK: %[[I:.+]] = stablehlo.clamp %{{.+}}, %arg1, %{{.+}} : tensor<i32>
# CHECK: "stablehlo.case"(%[[I]])
# CHECK: stablehlo.sine
# CHECK: stablehlo.cosine
# CHECK: stablehlo.tan
@print_ir("f32[3]", "i32[]")
def switch_clamps_its_index(x, i):
    return lax.switch(i, [jnp.sin, jnp.cos, jnp.tan], x)


# CHECK-LABEL: TEST: one_branch_is_no_branch
# CHECK-NOT: stablehlo.case
# CHECK: stablehlo.sine
@print_ir("f32[3]", "i32[]")
def one_branch_is_no_branch(x, i):
    return lax.switch(i, [jnp.sin], x)


# Lanes with their own predicates run all branches and select.
# CHECK-LABEL: TEST: batched_predicate
# CHECK-NOT: stablehlo.case
# CHECK: stablehlo.sine
# CHECK: stablehlo.select %{{.+}}, %{{.+}}, %{{.+}} : tensor<4xi1>, tensor<4xf32>
@print_ir("f32[4]")
def batched_predicate(x):
    import lamina

    return lamina.vmap(lambda v: lax.cond(v > 0, jnp.sin, lambda u: u, v))(x)


# CHECK-LABEL: TEST: while_loop
# CHECK: %[[OUT:.+]]:2 = stablehlo.while(%[[N:.+]] = %{{.+}}, %[[V:.+]] = %arg0) : tensor<i32>, tensor<3xf32>
# CHECK-NEXT: cond {
# CHECK:   stablehlo.compare LT, %[[N]], %arg1, SIGNED
# CHECK: } do {
# CHECK:   stablehlo.add %[[N]]
# CHECK:   stablehlo.multiply %[[V]], %[[V]]
# CHECK: return %[[OUT]]#1
@print_ir("f32[3]", "i32[]")
def while_loop(x, n):
    return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * c[1]), (0, x))[1]


# With traced bounds a fori_loop is a while; what its body hands on as it is, such as the end, is not carried.
# CHECK-LABEL: TEST: fori_loop_with_traced_bounds
# CHECK: stablehlo.while(%[[I:.+]] = %{{.+}}, %{{.+}} = %arg0)
# CHECK: stablehlo.compare LT, %[[I]], %arg1
@print_ir("f32[3]", "i32[]")
def fori_loop_with_traced_bounds(x, n):
    return lax.fori_loop(0, n, lambda i, v: v * v, x)


# A slice is read and a row written in each step, here from the last to the first.
# CHECK-LABEL: TEST: scan_backwards
# CHECK: %[[YS:.+]] = stablehlo.constant dense<0.000000e+00> : tensor<4x3xf32>
# CHECK: stablehlo.while(%[[I:.+]] = %{{.+}}, %[[C:.+]] = %arg0, %[[ALL:.+]] = %[[YS]])
# CHECK:   %[[END:.+]] = stablehlo.constant dense<4> : tensor<i32>
# CHECK:   stablehlo.compare LT, %[[I]], %[[END]]
# CHECK: } do {
# CHECK:   %[[LAST:.+]] = stablehlo.constant dense<3> : tensor<i32>
# CHECK:   %[[AT:.+]] = stablehlo.subtract %[[LAST]], %[[I]]
# CHECK:   stablehlo.dynamic_slice %arg1, %[[AT]], %{{.+}}, sizes = [1, 3]
# CHECK:   stablehlo.dynamic_update_slice %[[ALL]], %{{.+}}, %[[AT]]
@print_ir("f32[3]", "f32[4,3]")
def scan_backwards(c, xs):
    return lax.scan(lambda c, x: (c + x, c * x), c, xs, reverse=True)


# Two steps in one iteration; the fifth after the loop.
# CHECK-LABEL: TEST: scan_unrolled
# CHECK: stablehlo.while
# CHECK:   %[[END:.+]] = stablehlo.constant dense<4> : tensor<i32>
# CHECK: } do {
# CHECK-COUNT-2: stablehlo.dynamic_slice %arg1
# CHECK: stablehlo.constant dense<2> : tensor<i32>
# CHECK: }
# CHECK: stablehlo.dynamic_slice %arg1
# CHECK-NOT: stablehlo.dynamic_slice
@print_ir("f32[]", "f32[5]")
def scan_unrolled(c, xs):
    return lax.scan(lambda c, x: (c + x, ()), c, xs, unroll=2)


# CHECK-LABEL: TEST: scan_written_out
# CHECK-NOT: stablehlo.while
# CHECK-COUNT-3: stablehlo.sine
@print_ir("f32[]")
def scan_written_out(c):
    return lax.scan(lambda c, _: (jnp.sin(c), None), c, None, length=3, unroll=True)[0]


# The gradient of a scan is two loops: one keeps what the other reads, backwards.
# CHECK-LABEL: TEST: gradient_of_a_scan
# CHECK: stablehlo.while
# CHECK:   stablehlo.cosine
# CHECK:   stablehlo.dynamic_update_slice
# CHECK: stablehlo.while
# CHECK:   %[[LAST:.+]] = stablehlo.constant dense<7> : tensor<i32>
# CHECK:   stablehlo.subtract %[[LAST]]
# CHECK-NOT: stablehlo.cosine
# CHECK:   stablehlo.dynamic_slice
# CHECK-NOT: stablehlo.while
@print_ir("f32[]")
def gradient_of_a_scan(c):
    return lamina.grad(lambda c: lax.fori_loop(0, 8, lambda i, v: jnp.sin(v), c))(c)


# What is computed again waits behind a barrier for the cotangent; checkpoint itself leaves no trace.
# CHECK-LABEL: TEST: checkpoint
# CHECK-NOT: optimization_barrier
# CHECK: return
@print_ir("f32[4]")
def checkpoint(x):
    return lamina.checkpoint(lambda x: lax.sin(lax.cos(x)))(x)


# CHECK-LABEL: TEST: checkpoint_gradient
# CHECK: %[[B:.*]]:2 = stablehlo.optimization_barrier %{{.*}}, %{{.*}} : tensor<f32>, tensor<f32>
# CHECK: stablehlo.cosine %[[B]]#
@print_ir("f32[]")
def checkpoint_gradient(x):
    return lamina.grad(lamina.checkpoint(lambda x: lax.sin(lax.cos(x) * x)))(x * 2)


# A recurrence: one reduction over windows, and beside it the tree.
# CHECK-LABEL: TEST: recurrence
# CHECK: stablehlo.composite "lamina.two_forms" %arg0, %arg1
# CHECK-SAME: {composite_attributes = {in_blocks = @[[F:.+]]}, decomposition = @[[G:.+]]}
# CHECK: func.func private @[[G]](
# CHECK-NOT: reduce_window
# CHECK: func.func private @[[F]](
# CHECK: "stablehlo.reduce_window"(%arg0, %arg1, %{{.+}}, %{{.+}}) <{
# CHECK-SAME: padding = dense<{{\[\[}}99, 0{{\]\]}}>
# CHECK-SAME: window_dimensions = array<i64: 100>
@print_ir("f32[100]", "f32[100]")
def recurrence(a, b):
    def combined(x, y):
        return x[0] * y[0], y[0] * x[1] + y[1]

    return lax.associative_scan(combined, (a, b))[1]


# The same of sums of exponentials; short ones are combined by a tree.
# CHECK-LABEL: TEST: cumlogsumexp
# CHECK: %[[M:.+]] = "stablehlo.reduce_window"(%arg0
# CHECK: stablehlo.round_nearest_even %[[M]]
# CHECK-COUNT-2: stablehlo.exponential
# CHECK: %[[S:.+]] = stablehlo.composite "lamina.two_forms"
# CHECK: stablehlo.log %[[S]]
@print_ir("f32[40]")
def cumlogsumexp(x):
    return lax.cumlogsumexp(x)


# CHECK-LABEL: TEST: short_cumlogsumexp
# CHECK-NOT: composite
# CHECK: stablehlo.log_plus_one
@print_ir("f32[4]")
def short_cumlogsumexp(x):
    return lax.cumlogsumexp(x)
