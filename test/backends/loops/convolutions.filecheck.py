# RUN: %PYTHON %s | FileCheck %s
"""Vector IR of convolutions of all kinds and of both their gradients.

Each is over vectors as wide as the machine's: none falls to single elements."""

from print_loops import print_loops

import lamina
import lamina.numpy as jnp
from lamina import lax

_NHWC, _NCHW = ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW")


def convolved(x, w, step=1, spread=1, padding="SAME", **rest):
    numbers = rest.pop("layout", _NHWC)
    return lax.conv_general_dilated(x, w, (step, step), padding, (spread, spread), dimension_numbers=numbers, **rest)


def gradients(x, w, c, **how):
    return lamina.vjp(lambda x, w: convolved(x, w, **how), x, w)[1](c)


# Turned first, by whole vectors.
# CHECK-LABEL: TEST: channels_first
# CHECK-NEXT: kernel loop : transpose
# CHECK-NEXT: kernel loop : transpose
# CHECK-NEXT: kernel output : convolution
# CHECK-NEXT: kernel loop : transpose
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fmuladd.v
# CHECK-NOT: no vectors:
@print_loops("f32[4,64,28,28]", "f32[64,64,3,3]")
def channels_first(x, w):
    return convolved(x, w, layout=_NCHW)


# CHECK-LABEL: TEST: channels_first_gradients
# CHECK-NEXT: kernel loop : transpose
# CHECK-NEXT: kernel output : convolution
# CHECK-NEXT: kernel loop : transpose
# CHECK-NEXT: kernel loop : reverse transpose
# CHECK-NEXT: kernel output : convolution
# CHECK-NEXT: kernel loop : transpose
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fmuladd.v
# CHECK: full vectors:
# CHECK: fmuladd.v
# CHECK-NOT: no vectors:
@print_loops("f32[4,64,28,28]", "f32[64,64,3,3]", "f32[4,64,28,28]")
def channels_first_gradients(x, w, c):
    return gradients(x, w, c, layout=_NCHW)


# CHECK-LABEL: TEST: grouped
# CHECK-NEXT: kernel output : convolution
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fmuladd.v
# CHECK-NOT: no vectors:
@print_loops("f32[2,28,28,64]", "f32[3,3,16,64]")
def grouped(x, w):
    return convolved(x, w, feature_group_count=4)


# CHECK-LABEL: TEST: grouped_gradients
# CHECK-NEXT: kernel output : convolution
# CHECK-NEXT: kernel loop : transpose
# CHECK-NEXT: kernel loop : reverse
# CHECK-NEXT: kernel output : convolution
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fmuladd.v
# CHECK: full vectors:
# CHECK: fmuladd.v
# CHECK-NOT: no vectors:
@print_loops("f32[2,28,28,64]", "f32[3,3,16,64]", "f32[2,28,28,64]")
def grouped_gradients(x, w, c):
    return gradients(x, w, c, feature_group_count=4)


# CHECK-LABEL: TEST: dilated
# CHECK-NEXT: kernel output : convolution
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fmuladd.v
# CHECK-NOT: no vectors:
@print_loops("f32[2,28,28,64]", "f32[3,3,64,64]")
def dilated(x, w):
    return convolved(x, w, rhs_dilation=(2, 2))


# CHECK-LABEL: TEST: dilated_gradients
# CHECK-NEXT: kernel output : convolution
# CHECK-NEXT: kernel loop : reverse
# CHECK-NEXT: kernel output : convolution
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fmuladd.v
# CHECK: full vectors:
# CHECK: fmuladd.v
# CHECK-NOT: no vectors:
@print_loops("f32[2,28,28,64]", "f32[3,3,64,64]", "f32[2,28,28,64]")
def dilated_gradients(x, w, c):
    return gradients(x, w, c, rhs_dilation=(2, 2))


# CHECK-LABEL: TEST: strided
# CHECK-NEXT: kernel output : convolution
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fmuladd.v
# CHECK-NOT: no vectors:
@print_loops("f32[2,28,28,64]", "f32[3,3,64,64]")
def strided(x, w):
    return convolved(x, w, step=2)


# CHECK-LABEL: TEST: strided_gradients
# CHECK-NEXT: kernel output : convolution
# CHECK-NEXT: kernel loop : reverse
# CHECK-NEXT: kernel output : convolution
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fmuladd.v
# CHECK: full vectors:
# CHECK: fmuladd.v
# CHECK-NOT: no vectors:
@print_loops("f32[2,28,28,64]", "f32[3,3,64,64]", "f32[2,14,14,64]")
def strided_gradients(x, w, c):
    return gradients(x, w, c, step=2)


# CHECK-LABEL: TEST: transposed
# CHECK-NEXT: kernel output : convolution
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fmuladd.v
# CHECK-NOT: no vectors:
@print_loops("f32[4,16,16,64]", "f32[4,4,64,32]")
def transposed(x, w):
    return convolved(x, w, spread=2, padding=((2, 2), (2, 2)))


# CHECK-LABEL: TEST: transposed_gradients
# CHECK-NEXT: kernel output : convolution
# CHECK-NEXT: kernel loop : reverse
# CHECK-NEXT: kernel output : convolution
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fmuladd.v
# CHECK: full vectors:
# CHECK: fmuladd.v
# CHECK-NOT: no vectors:
@print_loops("f32[4,16,16,64]", "f32[4,4,64,32]", "f32[4,32,32,32]")
def transposed_gradients(x, w, c):
    return gradients(x, w, c, spread=2, padding=((2, 2), (2, 2)))


# What makes the input, panel by panel, and what multiplies with it.
# CHECK-LABEL: TEST: made_input
# CHECK-NEXT: kernel output
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: maximum.v
# CHECK-NOT: no vectors:
@print_loops("f32[8,28,28,64]", "f32[1,1,64,64]", "f32[64]", "f32[64]")
def made_input(x, w, scale, shift):
    return convolved(jnp.maximum(x * scale + shift, 0), w)


# Panels of columns, which here are space.
# CHECK-LABEL: TEST: made_input_channels_first
# CHECK-NEXT: kernel output
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: maximum.v
# CHECK-NOT: no vectors:
@print_loops("f32[8,32,32,32]", "f32[32,32,1,1]", "f32[32,1,1]", "f32[32,1,1]")
def made_input_channels_first(x, w, scale, shift):
    return convolved(jnp.maximum(x * scale + shift, 0), w, layout=_NCHW)


# In the copies of windows with the zeros around them.
# CHECK-LABEL: TEST: made_padded_input
# CHECK-NEXT: kernel output
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fmuladd.v
# CHECK-NOT: no vectors:
@print_loops("f32[8,28,28,64]", "f32[3,3,64,64]", "f32[64]", "f32[64]")
def made_padded_input(x, w, scale, shift):
    return convolved(jnp.maximum(x * scale + shift, 0), w)


# In all of the input with the zeros around it.
# CHECK-LABEL: TEST: made_input_of_gradient
# CHECK-NEXT: kernel output
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fmuladd.v
# CHECK-NOT: no vectors:
@print_loops("f32[8,28,28,64]", "f32[8,28,28,64]", "f32[64]")
def made_input_of_gradient(x, c, shift):
    made = jnp.maximum(x + shift, 0)
    return lamina.vjp(lambda w: convolved(made, w), jnp.zeros((3, 3, 64, 64)))[1](c)
