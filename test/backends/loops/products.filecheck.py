# RUN: %PYTHON %s | FileCheck %s
"""Vector IR of products, convolutions, attention, small matrices, loops, scatters, random bits.

Each class of kernel over vectors as wide as the machine's: none falls to single elements."""

from print_loops import print_loops

import lamina
import lamina.numpy as jnp
from lamina import lax, nn


def convolved(x, w, groups=1):
    dimensions = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(
        x, w, (1, 1), "SAME", dimension_numbers=dimensions, feature_group_count=groups
    )


def attended(q, k, v):
    return nn.softmax((q @ k.swapaxes(-1, -2)) / 8) @ v


# CHECK-LABEL: TEST: product
# CHECK-NEXT: kernel output
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fmuladd.v
# CHECK: maximum
# CHECK-NOT: no vectors:
@print_loops("f32[256,256]", "f32[256,256]", "f32[256]", matrix_products="kernel")
def product(a, b, c):
    return nn.relu(a @ b + c)


# CHECK-LABEL: TEST: matrix_vector
# CHECK-NEXT: kernel output
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fmul contract <{{[0-9]+}} x float>
# CHECK-NOT: no vectors:
@print_loops("f32[1024,1024]", "f32[1024]")
def matrix_vector(a, b):
    return a @ b


# One channel: along the longer vector.
# CHECK-LABEL: TEST: one_channel
# CHECK-NEXT: kernel output
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: <{{[0-9]+}} x float>
# CHECK-NOT: no vectors:
@print_loops("f32[65566]", "f32[31]")
def one_channel(x, w):
    return jnp.correlate(x, w)


# CHECK-LABEL: TEST: few_rows
# CHECK-NEXT: kernel output
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fmuladd.v
# CHECK-NOT: no vectors:
@print_loops("f32[4,1024]", "f32[1024,1024]")
def few_rows(a, b):
    return a @ b


# What makes a factor, and what multiplies with it.
# CHECK-LABEL: TEST: made_factor
# CHECK-NEXT: kernel output
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fma.v
# CHECK-NOT: no vectors:
@print_loops("f32[64,1024]", "bf16[1024,1024]", "f32[1024]")
def made_factor(a, b, scale):
    return a @ jnp.exp(b.astype(jnp.float32) * scale)


# CHECK-LABEL: TEST: narrow
# CHECK-NEXT: kernel output
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fpext <
# CHECK-NOT: no vectors:
@print_loops("f16[256,256]", "f16[256,256]")
def narrow(a, b):
    return a @ b


# CHECK-LABEL: TEST: convolution
# CHECK-NEXT: kernel output
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fmuladd.v
# CHECK-NOT: no vectors:
@print_loops("f32[2,28,28,64]", "f32[3,3,64,64]")
def convolution(x, w):
    return convolved(x, w)


# CHECK-LABEL: TEST: convolution_gradients
# CHECK-NEXT: kernel output
# CHECK-NEXT: kernel loop
# CHECK-NEXT: kernel output
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fmuladd.v
# CHECK: full vectors:
# CHECK: fmuladd.v
# CHECK-NOT: no vectors:
@print_loops("f32[2,28,28,64]", "f32[3,3,64,64]", "f32[2,28,28,64]")
def convolution_gradients(x, w, c):
    return lamina.vjp(convolved, x, w)[1](c)


# CHECK-LABEL: TEST: depthwise
# CHECK-NEXT: kernel output
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fmul contract <{{[0-9]+}} x float>
# CHECK-NOT: no vectors:
@print_loops("f32[2,28,28,64]", "f32[3,3,1,64]")
def depthwise(x, w):
    return convolved(x, w, 64)


# CHECK-LABEL: TEST: depthwise_gradients
# CHECK-NEXT: kernel output
# CHECK-NEXT: kernel loop
# CHECK-NEXT: kernel output
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fmul contract <{{[0-9]+}} x float>
# CHECK: full vectors:
# CHECK: fmul contract <{{[0-9]+}} x float>
# CHECK-NOT: no vectors:
@print_loops("f32[2,28,28,64]", "f32[3,3,1,64]", "f32[2,28,28,64]")
def depthwise_gradients(x, w, c):
    return lamina.vjp(lambda x, w: convolved(x, w, 64), x, w)[1](c)


# CHECK-LABEL: TEST: attention
# CHECK-NEXT: kernel attention
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fmuladd.v
# CHECK-NOT: no vectors:
@print_loops(*["f32[4,8,256,64]"] * 3)
def attention(q, k, v):
    return attended(q, k, v)


# CHECK-LABEL: TEST: attention_gradient
# CHECK-NEXT: kernel attention_gradient
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fmuladd.v
# CHECK-NOT: no vectors:
@print_loops(*["f32[4,8,256,64]"] * 3)
def attention_gradient(q, k, v):
    return lamina.grad(lambda *args: attended(*args).sum(), (0, 1, 2))(q, k, v)


# CHECK-LABEL: TEST: solves
# CHECK-NEXT: kernel library lamina.small_matrices
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: masked.gather
# CHECK: fdiv <
# CHECK-NOT: no vectors:
@print_loops("f32[1000,3,3]", "f32[1000,3,1]")
def solves(a, b):
    return jnp.linalg.solve(a, b)


# Diagonals and what is above them are copied element by element.
# CHECK-LABEL: TEST: choleskys
# CHECK-NEXT: kernel loop
# CHECK-NEXT: kernel library lamina.small_matrices
# CHECK-NOT: kernel
# CHECK: full vectors:
# CHECK: fdiv <
@print_loops("f32[1000,8,8]")
def choleskys(a):
    return lax.linalg.cholesky(a)


# Rows of eight are half a register.
# CHECK-LABEL: TEST: products
# CHECK-NEXT: kernel output
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: some vectors:
# CHECK: fmuladd.v
# CHECK-NOT: no vectors:
@print_loops("f32[1000,8,8]", "f32[1000,8,8]")
def products(a, b):
    return a @ b


# Vectors across matrices and vectors of three and four elements.
# CHECK-LABEL: TEST: small_products
# CHECK-NEXT: kernel output
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK-NOT: some vectors:
# CHECK: full vectors:
# CHECK: shufflevector <{{[0-9]+}} x float>
# CHECK: fmul contract <{{[0-9]+}} x float>
# CHECK-NOT: no vectors:
# CHECK-NOT: some vectors:
@print_loops("f32[1001,3,3]", "f32[1001,3,3]")
def small_products(a, b):
    return a @ b


# CHECK-LABEL: TEST: small_products_with_vectors
# CHECK-NEXT: kernel output
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK-NOT: some vectors:
# CHECK: full vectors:
# CHECK: shufflevector <{{[0-9]+}} x float>
# CHECK: fmul contract <{{[0-9]+}} x float>
# CHECK-NOT: no vectors:
# CHECK-NOT: some vectors:
@print_loops("f32[1001,4,4]", "f32[1001,4]", "f32[1001,4]")
def small_products_with_vectors(a, x, t):
    return jnp.einsum("bij,bj->bi", a, x) + t


# CHECK-LABEL: TEST: small_outer_products
# CHECK-NEXT: kernel loop
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK-NOT: some vectors:
# CHECK: full vectors:
# CHECK: shufflevector <{{[0-9]+}} x float>
# CHECK: fmul contract <{{[0-9]+}} x float>
# CHECK-NOT: no vectors:
# CHECK-NOT: some vectors:
@print_loops("f32[1001,3]", "f32[1001,3]")
def small_outer_products(x, y):
    return jnp.einsum("bi,bj->bij", x, y)


# The rows of both dimensions fill vectors.
# CHECK-LABEL: TEST: small_traces
# CHECK-NEXT: kernel output
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK-NOT: some vectors:
# CHECK: full vectors:
# CHECK: fmul contract <{{[0-9]+}} x float>
# CHECK-NOT: no vectors:
# CHECK-NOT: some vectors:
@print_loops("f32[1001,16,16]", "f32[1001,16,16]")
def small_traces(a, b):
    return jnp.einsum("bij,bij->b", a, b)


# CHECK-LABEL: TEST: small_gradients
# CHECK: kernel output
# CHECK-NOT: no vectors:
# CHECK-NOT: some vectors:
# CHECK: full vectors:
# CHECK: shufflevector <{{[0-9]+}} x float>
# CHECK-NOT: no vectors:
# CHECK-NOT: some vectors:
@print_loops("f32[1001,3,3]", "f32[1001,3,3]", "f32[1001,3,3]")
def small_gradients(a, b, c):
    return lamina.vjp(jnp.matmul, a, b)[1](c)


# CHECK-LABEL: TEST: small_products_in_loops
# CHECK-NEXT: kernel control
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK-NOT: some vectors:
# CHECK: full vectors:
# CHECK: shufflevector <{{[0-9]+}} x float>
# CHECK-NOT: no vectors:
# CHECK-NOT: some vectors:
@print_loops("f32[101,4,4]", "f32[101,4]")
def small_products_in_loops(a, x):
    def power(a, x):
        return lax.fori_loop(0, 10, lambda _, x: a @ x * 0.5, x)

    return lamina.vmap(power)(a, x)


# CHECK-LABEL: TEST: rnn
# CHECK-NEXT: kernel control
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fadd reassoc contract <{{[0-9]+}} x float>
# CHECK-NOT: no vectors:
@print_loops("f32[64,64]", "f32[64,64]", "f32[1000,64]")
def rnn(w, u, xs):
    return lax.scan(lambda h, x: (jnp.tanh(w @ h + u @ x), None), jnp.zeros(64), xs)[0]


# CHECK-LABEL: TEST: loop
# CHECK-NEXT: kernel control
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fma.v
# CHECK-NOT: no vectors:
@print_loops("f32[1024]")
def loop(x):
    return lax.fori_loop(0, 100, lambda _, x: jnp.sin(x) * 1.1, x)


# CHECK-LABEL: TEST: scatter_rows
# CHECK-NEXT: kernel update : compare add select scatter
# CHECK-NOT: kernel
# CHECK: full vectors:
# CHECK: fadd contract <{{[0-9]+}} x float>
@print_loops("f32[512,512]", "i32[100]", "f32[100,512]")
def scatter_rows(x, i, u):
    return x.at[i].add(u)


# CHECK-LABEL: TEST: random_bits
# CHECK-NEXT: kernel loop
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fshl
# CHECK-NOT: no vectors:
@print_loops("u32[2]")
def random_bits(k):
    return lamina.random.uniform(lamina.random.wrap_key_data(k), (65536,))


# Tables are made one by one.
# CHECK-LABEL: TEST: fourier
# CHECK-NEXT: kernel library lamina.fft
# CHECK-NOT: kernel
# CHECK: full vectors:
# CHECK: fmul contract <{{[0-9]+}} x float>
@print_loops("c64[65536]")
def fourier(x):
    return jnp.fft.fft(x)


# A prime length by its definition, in two rows each.
# CHECK-LABEL: TEST: fourier_of_real_rows
# CHECK-NEXT: kernel library lamina.fft
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fmul contract <{{[0-9]+}} x float>
# CHECK-NOT: no vectors:
@print_loops("f32[64,17]")
def fourier_of_real_rows(x):
    return jnp.fft.rfft(x)


# CHECK-LABEL: TEST: fourier_to_real_rows
# CHECK-NEXT: kernel library lamina.fft
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fmul contract <{{[0-9]+}} x float>
# CHECK-NOT: no vectors:
@print_loops("c64[64,129]")
def fourier_to_real_rows(x):
    return jnp.fft.irfft(x)


# Rows and columns are counted one by one around vectors of matrices.
# CHECK-LABEL: TEST: inverses
# CHECK-NEXT: kernel loop : iota
# CHECK-NEXT: kernel library lamina.small_matrices
# CHECK-NOT: kernel
# CHECK: full vectors:
# CHECK: fmul contract <{{[0-9]+}} x float>
@print_loops("f32[1000,8,8]")
def inverses(a):
    return jnp.linalg.inv(a)


# CHECK-LABEL: TEST: factors
# CHECK-NEXT: kernel library lamina.small_matrices
# CHECK-NOT: kernel
# CHECK: full vectors:
# CHECK: fmul contract <{{[0-9]+}} x float>
@print_loops("f32[1000,8,8]")
def factors(a):
    return lax.linalg.lu(a)


# CHECK-LABEL: TEST: fourier_of_matrices
# CHECK-NEXT: kernel library lamina.fft
# CHECK-NOT: kernel
# CHECK: full vectors:
# CHECK: fmul contract <{{[0-9]+}} x float>
@print_loops("c64[256,256]")
def fourier_of_matrices(x):
    return jnp.fft.fft2(x)
