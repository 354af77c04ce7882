# RUN: %PYTHON %s | FileCheck %s
"""Lowering of jit: private functions, donation, names of results, places."""

import numpy as np
from print_ir import print_ir

import lamina
import lamina.numpy as jnp

X = np.ones(3, np.float32)


def show(name, lowered, **options):
    print(f"TEST: {name}")
    print(lowered.as_text(**options))


@lamina.jit
def inner(x):
    return jnp.sin(x)


# One function, called twice; another type is another function.
# CHECK-LABEL: TEST: calls
# CHECK: func.func public @main
# CHECK: call @inner(%arg0) : (tensor<3xf32>) -> tensor<3xf32>
# CHECK: call @inner(%{{.+}}) : (tensor<3xf32>) -> tensor<3xf32>
# CHECK: call @inner_0(%{{.+}}) : (tensor<f32>) -> tensor<f32>
# CHECK-COUNT-1: func.func private @inner(%arg0: tensor<3xf32>)
# CHECK-COUNT-1: func.func private @inner_0(%arg0: tensor<f32>)
# CHECK-NOT: func.func
@print_ir("f32[3]")
def calls(x):
    return inner(x) + inner(x * x) + inner(x[0])


# Equal functions of equal names are one function, whoever wrote them.
# CHECK-LABEL: TEST: equal_functions
# CHECK: call @square(
# CHECK: call @square(
# CHECK-COUNT-1: func.func private @square(
# CHECK-NOT: func.func
@print_ir("f32[3]")
def equal_functions(x):
    def make():
        @lamina.jit
        def square(v):
            return v * v

        return square

    return make()(x) + make()(x + x)


# A value of the outside is an argument of the function.
# CHECK-LABEL: TEST: closed_over
# CHECK: call @f(%arg1, %arg0)
# CHECK: func.func private @f(%arg0: tensor<f32>, %arg1: tensor<3xf32>)
@print_ir("f32[3]", "f32[]")
def closed_over(x, s):
    @lamina.jit
    def f(v):
        return v * s

    return f(x)


# CHECK-LABEL: TEST: inlined
# CHECK-NOT: call
# CHECK: stablehlo.sine
@print_ir("f32[3]")
def inlined(x):
    return lamina.jit(lambda v: jnp.sin(v), inline=True)(x)


# The forward part and the backward part are functions of their own.
# CHECK-LABEL: TEST: gradient
# CHECK: call @inner(
# CHECK: call @inner_0(
# CHECK: func.func private @inner(
# CHECK: stablehlo.cosine
# CHECK: func.func private @inner_0(
# CHECK: stablehlo.multiply
@print_ir("f32[3]")
def gradient(x):
    return lamina.grad(lambda v: inner(v).sum())(x)


# CHECK-LABEL: TEST: donation
# CHECK: module @jit_step
# CHECK: %arg0: tensor<3xf32> {lamina.name = "state['a']", tf.aliasing_output = 0 : i32}
# CHECK-SAME: %arg1: tensor<2xf32> {lamina.name = "state['b']", tf.aliasing_output = 1 : i32}
# CHECK-SAME: %arg2: tensor<f32> {lamina.name = "x"}
# CHECK-SAME: -> (tensor<3xf32> {jax.result_info = "result['a']"}, tensor<2xf32> {jax.result_info = "result['b'][0]"}
def step(state, x):
    return {"a": state["a"] + x, "b": (state["b"] * x, None)}


show("donation", lamina.jit(step, donate_argnums=0).lower({"a": X, "b": X[:2]}, 1.0))


# Arguments that are not read are left out, unless they are to be kept.
# CHECK-LABEL: TEST: unused
# CHECK: @main(%arg0: tensor<3xf32> {lamina.name = "y"})
# CHECK-LABEL: TEST: keep_unused
# CHECK: @main(%arg0: tensor<f32> {lamina.name = "x"}, %arg1: tensor<3xf32> {lamina.name = "y"})
show("unused", lamina.jit(lambda x, y: y * 2).lower(1.0, X))
show("keep_unused", lamina.jit(lambda x, y: y * 2, keep_unused=True).lower(1.0, X))


# Small constants are in the program, large ones are arguments.
# CHECK-LABEL: TEST: constants
# CHECK: @main(%arg0: tensor<10000xf32>, %arg1: tensor<f32> {lamina.name = "x"})
# CHECK: stablehlo.constant dense<[0.000000e+00, 1.000000e+00, 2.000000e+00]> : tensor<3xf32>
SMALL, LARGE = np.arange(3, dtype=np.float32), np.arange(10_000, dtype=np.float32)
show("constants", lamina.jit(lambda x: (x + SMALL, jnp.asarray(LARGE) * x)).lower(2.0))


# Operation, function, file and line; then who called it.
# CHECK-LABEL: TEST: places
# CHECK-DAG: #[[LEAF:.+]] = loc("{{.*}}jit.filecheck.py":[[LINE:[0-9]+]]:{{[0-9]+}})
# CHECK-DAG: #[[INNER:.+]] = loc("leaf"(#[[LEAF]]))
# CHECK-DAG: loc("middle"(
# CHECK-DAG: #[[STACK:.+]] = loc(callsite(#[[INNER]] at #{{.+}}))
# CHECK-DAG: loc("tanh"(#[[STACK]]))
def leaf(x):
    return jnp.tanh(x)


def middle(x):
    return leaf(x)


show("places", lamina.jit(middle).lower(X), debug_info=True)
