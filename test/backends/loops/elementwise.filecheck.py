# RUN: %PYTHON %s | FileCheck %s
"""Vector IR of element-wise kernels: chains, conversions, and what moves elements into them.

Each class of kernel over vectors as wide as the machine's: none falls to single elements."""

import functools

from print_loops import print_loops

import lamina.numpy as jnp
from lamina.scipy import special


# CHECK-LABEL: TEST: chain
# CHECK-NEXT: kernel loop
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fmul contract <{{[0-9]+}} x float>
# CHECK: fabs
# CHECK: fadd contract <{{[0-9]+}} x float>
# CHECK-NOT: no vectors:
@print_loops("f32[4096]")
def chain(x):
    return functools.reduce(lambda a, i: jnp.abs(a * 1.5) + i, range(15), x)


# CHECK-LABEL: TEST: long_chain
# CHECK-NEXT: kernel loop
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fmul contract <{{[0-9]+}} x float>
# CHECK-NEXT: fmul
# CHECK-NEXT: fmul
# CHECK-NEXT: fmul
# CHECK: fabs
# CHECK-NEXT: fabs
# CHECK-NEXT: fabs
# CHECK-NEXT: fabs
# CHECK-NOT: no vectors:
@print_loops("f32[4096]")
def long_chain(x):
    return functools.reduce(lambda a, i: jnp.abs(a * 1.5) + i, range(60), x)


# CHECK-LABEL: TEST: math
# CHECK-NEXT: kernel loop
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fma.v
# CHECK-NOT: no vectors:
@print_loops("f32[4096]")
def math(x):
    return jnp.exp(x) + jnp.log(x) + jnp.tanh(x) + jnp.sin(x)


# CHECK-LABEL: TEST: broadcasts
# CHECK-NEXT: kernel loop
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fmul contract <{{[0-9]+}} x float>
# CHECK: fadd
# CHECK-NOT: no vectors:
@print_loops("f32[64,512]", "f32[512]", "f32[64]")
def broadcasts(x, r, c):
    return x * r + c[:, None]


# CHECK-LABEL: TEST: converts
# CHECK-NEXT: kernel loop
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: sitofp <
# CHECK: fadd contract <{{[0-9]+}} x float>
# CHECK-NOT: no vectors:
@print_loops("i8[4096]", "bf16[4096]")
def converts(i, b):
    return i.astype("float32") + b.astype("float32")


# CHECK-LABEL: TEST: to_bf16
# CHECK-NEXT: kernel loop
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: load <{{[0-9]+}} x float>
# CHECK: trunc
# CHECK: store <{{[0-9]+}} x i16>
# CHECK-NOT: no vectors:
@print_loops("f32[4096]")
def to_bf16(x):
    return x.astype("bfloat16")


# CHECK-LABEL: TEST: bf16_arithmetic
# CHECK-NEXT: kernel loop
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fmul contract <[[N:[0-9]+]] x float>
# CHECK: fptrunc <[[N]] x float> %{{.*}} to <[[N]] x bfloat>
# CHECK: sitofp <[[N]] x i8> %{{.*}} to <[[N]] x float>
# CHECK: store <[[N]] x bfloat>
# CHECK-NOT: no vectors:
@print_loops("bf16[4096]", "i8[4096]", processor="x86-64-v4+avx512bf16")
def bf16_arithmetic(x, i):
    return x * x + i.astype("bfloat16")


# CHECK-LABEL: TEST: selects
# CHECK-NEXT: kernel loop
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fcmp ogt <{{[0-9]+}} x float>
# CHECK: select <
# CHECK-NOT: no vectors:
@print_loops("f32[4096]")
def selects(x):
    return jnp.where(x > jnp.arange(4096.0), x, 0.0)


# CHECK-LABEL: TEST: slices
# CHECK-NEXT: kernel loop
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: load <{{[0-9]+}} x float>
# CHECK: fsub contract <{{[0-9]+}} x float>
# CHECK-NOT: no vectors:
@print_loops("f32[4096]")
def slices(x):
    return x[1:] - x[:-1]


# CHECK-LABEL: TEST: pads
# CHECK-NEXT: kernel loop
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fmul contract <{{[0-9]+}} x float>
# CHECK-NOT: no vectors:
@print_loops("f32[4096]")
def pads(x):
    return jnp.pad(x * 2, 8) + 1


# CHECK-LABEL: TEST: concatenations
# CHECK-NEXT: kernel loop
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fmul contract <{{[0-9]+}} x float>
# CHECK: fadd
# CHECK-NOT: no vectors:
@print_loops("f32[4096]", "f32[4096]")
def concatenations(x, y):
    return jnp.concatenate([x * 2, y + 1]) * 3


# CHECK-LABEL: TEST: columns
# CHECK-NEXT: kernel loop
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: shufflevector <{{[0-9]+}} x float>
# CHECK: fmul contract <{{[0-9]+}} x float>
# CHECK: shufflevector <{{[0-9]+}} x float>
# CHECK-NOT: no vectors:
@print_loops("f32[4096,3]", "f32[4096,3]")
def columns(x, y):
    return jnp.cross(x, y)


# The seam leaves 511 elements of a row: their last ones are done one by one.
# CHECK-LABEL: TEST: rolls
# CHECK-NEXT: kernel loop
# CHECK-NOT: kernel
# CHECK: fadd contract <{{[0-9]+}} x float>
@print_loops("f32[512,512]")
def rolls(u):
    return jnp.roll(u, 1, 1) + u


# CHECK-LABEL: TEST: gathers
# CHECK-NEXT: kernel loop
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: masked.gather
# CHECK: fmul contract <{{[0-9]+}} x float>
# CHECK-NOT: no vectors:
@print_loops("f32[4096]", "i32[4096]")
def gathers(x, i):
    return x[i] * 2


# CHECK-LABEL: TEST: transposes
# CHECK-NEXT: kernel loop
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: shufflevector <{{[0-9]+}} x float>
# CHECK-NOT: no vectors:
@print_loops("f32[256,256]")
def transposes(x):
    return x.T


# The last tiles are shifted back.
# CHECK-LABEL: TEST: turned_of_any_size
# CHECK-NEXT: kernel loop
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: shufflevector <{{[0-9]+}} x float>
# CHECK-NOT: no vectors:
@print_loops("f32[251,77]")
def turned_of_any_size(x):
    return x.T


# Few rows are dealt into one, and back.
# CHECK-LABEL: TEST: channels_last
# CHECK-NEXT: kernel loop
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: shufflevector <{{[0-9]+}} x float>
# CHECK-NOT: store float
# CHECK-NOT: no vectors:
@print_loops("f32[2,3,56,56]")
def channels_last(x):
    return x.transpose(0, 2, 3, 1)


# CHECK-LABEL: TEST: channels_first
# CHECK-NEXT: kernel loop
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: shufflevector <{{[0-9]+}} x i8>
# CHECK-NOT: store float
# CHECK-NOT: no vectors:
@print_loops("u8[2,56,56,3]")
def channels_first(x):
    return x.transpose(0, 3, 1, 2).astype("float32")


# CHECK-LABEL: TEST: repeated
# CHECK-NEXT: kernel loop
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: shufflevector <{{[0-9]+}} x float>
# CHECK-NOT: store float
# CHECK-NOT: no vectors:
@print_loops("f32[64,500]")
def repeated(x):
    return jnp.repeat(x, 2, 1)


# Once calls of libm.
# CHECK-LABEL: TEST: remainder_of_floats
# CHECK-NEXT: kernel loop
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fma.v{{[0-9]+}}f64
# CHECK-NOT: no vectors:
@print_loops("f32[65536]", "f32[65536]")
def remainder_of_floats(x, y):
    return x % y


# No machine divides vectors of integers: floats do it, also for the few elements left at the end.
# CHECK-LABEL: TEST: remainder_of_integers
# CHECK-NEXT: kernel loop
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fdiv <{{[0-9]+}} x float>
# CHECK-NOT: {{[su]rem|[su]div}}
@print_loops("i8[65536]", "i8[65536]")
def remainder_of_integers(x, y):
    return x % y


# CHECK-LABEL: TEST: quotient_of_words
# CHECK-NEXT: kernel loop
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fdiv <{{[0-9]+}} x double>
# CHECK-NOT: {{[su]rem|[su]div}}
@print_loops("u32[65536]", "u32[65536]")
def quotient_of_words(x, y):
    return x // y


# CHECK-LABEL: TEST: log_ndtr
# CHECK-NEXT: kernel loop
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK-NOT: double
# CHECK: full vectors:
# CHECK: fmul contract <{{[0-9]+}} x float>
# CHECK-NOT: double
# CHECK-NOT: no vectors:
@print_loops("f32[4096]")
def log_ndtr(x):
    return special.log_ndtr(x)


# CHECK-LABEL: TEST: digamma
# CHECK-NEXT: kernel loop
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fdiv <{{[0-9]+}} x double>
# CHECK-NOT: no vectors:
@print_loops("f32[4096]")
def digamma(x):
    return special.digamma(x)


# CHECK-LABEL: TEST: integer_powers
# CHECK-NEXT: kernel input
# CHECK-NOT: no vectors:
# CHECK: kernel control
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: mul <{{[0-9]+}} x i32>
# CHECK: full vectors:
# CHECK: mul <{{[0-9]+}} x i32>
# CHECK-NOT: no vectors:
@print_loops("i32[4096]", "i32[4096]")
def integer_powers(x, y):
    return x**y
