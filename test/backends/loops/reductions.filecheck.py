# RUN: %PYTHON %s | FileCheck %s
"""Vector IR of reductions, of what is one kernel along rows, and of scans.

Each class of kernel over vectors as wide as the machine's: none falls to single elements."""

from print_loops import print_loops

import lamina
import lamina.numpy as jnp
from lamina import lax, nn
from lamina.scipy.special import logsumexp


# CHECK-LABEL: TEST: full_sum
# CHECK-NEXT: kernel input
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fadd reassoc contract <{{[0-9]+}} x float>
# CHECK-NOT: no vectors:
@print_loops("f32[512,512]")
def full_sum(x):
    return jnp.sum(x * x) * 2


# CHECK-LABEL: TEST: row_sum
# CHECK-NEXT: kernel input
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fabs
# CHECK: fadd reassoc contract <{{[0-9]+}} x float>
# CHECK-NOT: no vectors:
@print_loops("f32[512,512]")
def row_sum(x):
    return jnp.sum(jnp.abs(x), 1) * 2


# CHECK-LABEL: TEST: column_sum
# CHECK-NEXT: kernel input
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fabs
# CHECK: fadd
# CHECK-NOT: no vectors:
@print_loops("f32[512,512]")
def column_sum(x):
    return jnp.sum(jnp.abs(x), 0) * 2


# The few rows that fill no wide one are added up by gathers, or one by one.
# CHECK-LABEL: TEST: few_columns_sum
# CHECK-NEXT: kernel input
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fabs.v{{[0-9]+}}f32
# CHECK: fadd reassoc contract <{{[0-9]+}} x float>
@print_loops("f32[30000,3]")
def few_columns_sum(x):
    return jnp.sum(jnp.abs(x), 0) * 2


# CHECK-LABEL: TEST: axes_sum
# CHECK-NEXT: kernel input
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: maximum.v
# CHECK-NOT: no vectors:
@print_loops("f32[16,64,512]")
def axes_sum(x):
    return jnp.max(x, (0, 2))


# CHECK-LABEL: TEST: siblings
# CHECK-NEXT: kernel input
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fadd reassoc contract <{{[0-9]+}} x float>
# CHECK: full vectors:
# CHECK: maximum.v
# CHECK-NOT: no vectors:
@print_loops("f32[512,512]")
def siblings(x):
    return x.sum(1), x.max(1)


# CHECK-LABEL: TEST: both_ways
# CHECK-NEXT: kernel input
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fmul contract <{{[0-9]+}} x float>
# CHECK: fadd reassoc contract <{{[0-9]+}} x float>
# CHECK-NOT: no vectors:
@print_loops("f32[512,512]")
def both_ways(x):
    return (x * x).sum(1), (x * x).sum(0)


# CHECK-LABEL: TEST: down_columns
# CHECK-NEXT: kernel input
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fma.v
# CHECK: fadd reassoc contract <{{[0-9]+}} x float>
# CHECK: maximum.v
# CHECK-NOT: no vectors:
@print_loops("f32[512,512]")
def down_columns(x):
    return jnp.exp(x).sum(0), x.sum(0), x.max(0)


# CHECK-LABEL: TEST: softmax_rows
# CHECK-NEXT: kernel rows
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: maximum.v
# CHECK: fma.v
# CHECK: fadd reassoc contract <{{[0-9]+}} x float>
# CHECK-NOT: no vectors:
@print_loops("f32[512,512]")
def softmax_rows(x):
    return nn.softmax(x, 1)


# CHECK-LABEL: TEST: softmax_columns
# CHECK-NEXT: kernel rows
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: maximum.v
# CHECK: fma.v
# CHECK-NOT: no vectors:
@print_loops("f32[512,512]")
def softmax_columns(x):
    return nn.softmax(x, 0)


# Blocks of short rows are turned (`linalg-pack-short-rows`).
# CHECK-LABEL: TEST: softmax_of_short_rows
# CHECK-NEXT: kernel rows
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: shufflevector
# CHECK: maximum.v
# CHECK: fma.v
# CHECK-NOT: no vectors:
@print_loops("f32[30000,10]")
def softmax_of_short_rows(x):
    return nn.softmax(x, 1)


# CHECK-LABEL: TEST: log_sum_exp_of_short_rows
# CHECK-NEXT: kernel rows
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: shufflevector
# CHECK: fma.v
# CHECK-NOT: no vectors:
@print_loops("f32[30000,6]")
def log_sum_exp_of_short_rows(x):
    return nn.logsumexp(x, 1)


# CHECK-LABEL: TEST: log_softmax
# CHECK-NEXT: kernel rows
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: maximum.v
# CHECK: fma.v
# CHECK-NOT: no vectors:
@print_loops("f32[512,512]")
def log_softmax(x):
    return nn.log_softmax(x, 1)


# CHECK-LABEL: TEST: layernorm
# CHECK-NEXT: kernel rows
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fadd reassoc contract <{{[0-9]+}} x float>
# CHECK: fsub contract <{{[0-9]+}} x float>
# CHECK-NOT: no vectors:
@print_loops("f32[512,512]", "f32[512]")
def layernorm(x, g):
    from_mean = x - x.mean(1, keepdims=True)
    variance = (from_mean**2).mean(1, keepdims=True)
    return from_mean * lax.rsqrt(variance + 1e-5) * g


# CHECK-LABEL: TEST: batch_norm_statistics
# CHECK-NEXT: kernel rows
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fadd reassoc contract <{{[0-9]+}} x float>
# CHECK: fsub contract <{{[0-9]+}} x float>
# CHECK-NOT: no vectors:
@print_loops("f32[512,512]")
def batch_norm_statistics(x):
    return x.mean(0), x.var(0)


# CHECK-LABEL: TEST: variance
# CHECK-NEXT: kernel rows
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fadd reassoc contract <{{[0-9]+}} x float>
# CHECK: fsub contract <{{[0-9]+}} x float>
# CHECK-NOT: no vectors:
@print_loops("f32[512,512]")
def variance(x):
    return x.var(1)


# CHECK-LABEL: TEST: log_sum_exp
# CHECK-NEXT: kernel rows
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: maximum.v
# CHECK: fma.v
# CHECK-NOT: no vectors:
@print_loops("f32[512,512]")
def log_sum_exp(x):
    return logsumexp(x, 1)


# CHECK-LABEL: TEST: cross_entropy
# CHECK-NEXT: kernel rows
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: maximum.v
# CHECK: fma.v
# CHECK-NOT: no vectors:
@print_loops("f32[512,512]", "i32[512]")
def cross_entropy(x, labels):
    return -jnp.sum(nn.one_hot(labels, 512) * nn.log_softmax(x), -1)


# The element first, then its place.
# CHECK-LABEL: TEST: argmax
# CHECK-NEXT: kernel rows
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: maximum.v
# CHECK: full vectors:
# CHECK: select <{{[0-9]+}} x i1>
# CHECK: smin.v
# CHECK-NOT: no vectors:
@print_loops("f32[512,512]")
def argmax(x):
    return jnp.argmax(x, 1)


# CHECK-LABEL: TEST: argmax_columns
# CHECK-NEXT: kernel input
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fcmp
# CHECK: select <
# CHECK-NOT: no vectors:
@print_loops("f32[512,512]")
def argmax_columns(x):
    return jnp.argmax(x, 0)


# CHECK-LABEL: TEST: pairs
# CHECK-NEXT: kernel input
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fma.v
# CHECK-NOT: no vectors:
@print_loops("f32[1024]", "f32[1024]")
def pairs(x, y):
    return jnp.sum(jnp.exp(-jnp.abs(x[:, None] - y[None])), 1)


# CHECK-LABEL: TEST: bf16_max
# CHECK-NEXT: kernel input
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: maximum.v
# CHECK-NOT: no vectors:
@print_loops("bf16[512,512]")
def bf16_max(x):
    return jnp.max(x, 1)


# CHECK-LABEL: TEST: scan_rows
# CHECK-NEXT: kernel library lamina.scan
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: shufflevector <
# CHECK-NOT: no vectors:
@print_loops("f32[512,512]")
def scan_rows(x):
    return jnp.cumsum(x, 1)


# CHECK-LABEL: TEST: scan_columns
# CHECK-NEXT: kernel library lamina.scan
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fadd
# CHECK-NOT: no vectors:
@print_loops("f32[512,512]")
def scan_columns(x):
    return jnp.cumsum(x, 0)


# CHECK-LABEL: TEST: softmax_gradient
# CHECK-NEXT: kernel rows
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fadd {{.*}}<{{[0-9]+}} x float>
# CHECK-NOT: no vectors:
@print_loops("f32[512,512]")
def softmax_gradient(x):
    return lamina.grad(lambda x: (nn.softmax(x) ** 2).sum())(x)


# CHECK-LABEL: TEST: layernorm_gradient
# CHECK-NEXT: kernel rows
# CHECK-NEXT: kernel input
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fadd {{.*}}<{{[0-9]+}} x float>
# CHECK-NOT: no vectors:
@print_loops("f32[512,512]", "f32[512]")
def layernorm_gradient(x, g):
    return lamina.grad(lambda *args: (layernorm(*args) ** 2).sum(), (0, 1))(x, g)


# LLVM leaves the last of pairs to single elements, lest it read behind them.
# CHECK-LABEL: TEST: complex_row_sum
# CHECK-NEXT: kernel input
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fadd reassoc contract <{{[0-9]+}} x float>
@print_loops("c64[512,512]")
def complex_row_sum(x):
    return x.sum(1)


# CHECK-LABEL: TEST: extremes_without_nan
# CHECK-NEXT: kernel input
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: maximum.v
# CHECK-NOT: no vectors:
@print_loops("f32[512,512]")
def extremes_without_nan(x):
    return jnp.nanmax(x, 1)


# CHECK-LABEL: TEST: masked_extremes
# CHECK-NEXT: kernel input
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: maximum.v
# CHECK-NOT: no vectors:
@print_loops("f32[512,512]", "bool[512,512]")
def masked_extremes(x, mask):
    return jnp.max(x, 1, where=mask, initial=-jnp.inf)


# The weights are added up once, and read a row at a time.
# CHECK-LABEL: TEST: weighted_columns
# CHECK-NEXT: kernel input : reduce
# CHECK-NEXT: kernel input : broadcast_in_dim multiply reduce broadcast_in_dim divide
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fadd reassoc contract <{{[0-9]+}} x float>
# CHECK-NOT: no vectors:
@print_loops("f32[2048,512]", "f32[2048]")
def weighted_columns(x, weights):
    return jnp.average(x, 0, weights)
