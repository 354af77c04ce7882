# RUN: %PYTHON %s | FileCheck %s
"""PTX of kernels that are read off the loops, of products and attention: what makes each fast."""

from print_ptx import print_ptx

import lamina
import lamina.numpy as jnp
from lamina import lax


# One kernel; rows pass memory once in and once out, and stay in registers between.
# CHECK-LABEL: TEST: softmax
# CHECK: // kernel
# CHECK-COUNT-8: ld.global.nc.v4.b32
# CHECK-NOT: ld.global
# CHECK-COUNT-5: shfl.sync.bfly.b32
# CHECK: st.shared.b32
# CHECK: bar.sync
# CHECK-NOT: ld.global
# CHECK-COUNT-5: shfl.sync.bfly.b32
# CHECK: bar.sync
# CHECK-NOT: ld.global
# CHECK-COUNT-8: st.global.v4.b32
# CHECK-NOT: .entry
# CHECK-LABEL: TEST: layernorm
@print_ptx("f32[512,4096]")
def softmax(x):
    return lamina.nn.softmax(x, axis=1)


# Narrow elements are read once, eight at a time, and kept wide in registers.
# CHECK: // kernel
# CHECK-COUNT-4: ld.global.nc.v4.b32
# CHECK-COUNT-5: shfl.sync.bfly.b32
# CHECK: bar.sync
# CHECK-COUNT-5: shfl.sync.bfly.b32
# CHECK: bar.sync
# CHECK: st.global.v4.b32
# CHECK-NOT: .entry
# CHECK-LABEL: TEST: columns
@print_ptx("bf16[512,4096]", "bf16[4096]")
def layernorm(x, scale):
    x = x.astype(jnp.float32)
    x = x - x.mean(1, keepdims=True)
    return (x * lax.rsqrt((x * x).mean(1, keepdims=True) + 1e-5)).astype(jnp.bfloat16) * scale


# Few columns: parts of them, four columns of a thread, then their sums.
# CHECK: .entry
# CHECK: .maxntid 32, 8, 1
# CHECK-COUNT-4: ld.global.nc.v4.b32
# CHECK: st.shared.v4.b32
# CHECK: bar.sync
# CHECK-COUNT-8: ld.shared.b32
# CHECK: .entry
# CHECK-COUNT-8: ld.global.nc.b32
@print_ptx("f32[4096,512]")
def columns(x):
    return x.sum(0)


# Of everything: parts, then one block; value, place and whether there is any go together.
# CHECK-LABEL: TEST: everything
# CHECK: .entry
# CHECK: ld.global.nc.v4.b32
# CHECK-COUNT-15: shfl.sync.bfly.b32
# CHECK: bar.sync
# CHECK: .entry
# CHECK-COUNT-15: shfl.sync.bfly.b32
# CHECK-NOT: .entry
# CHECK-LABEL: TEST: gather
@print_ptx("f32[4096,512]")
def everything(x):
    return jnp.argmax(x)


# CHECK: // kernel fused_gather
# CHECK: ld.global.nc.v4.b32
# CHECK: st.global.v4.b32
@print_ptx("f32[4096,512]", "i32[1000]")
def gather(x, i):
    return x[i]


# CHECK-LABEL: TEST: concatenate
# CHECK: // kernel
# CHECK: st.global.v4.b32
@print_ptx("f32[64,128]", "f32[32,128]")
def concatenate(x, y):
    return jnp.concatenate([x, y])


# Products by threads: two halves of shared memory, one barrier a step, results of 16 bytes.
# CHECK-LABEL: TEST: threads
# CHECK: // kernel fused_dot_general
# CHECK: .maxntid 256, 1, 1
# CHECK: st.shared
# CHECK: bar.sync
# CHECK: ld.global.nc
# CHECK: ld.shared.v{{[24]}}.b32
# CHECK: fma.rn.f32
# CHECK: bar.sync
# CHECK: st.global.v4.b32
@print_ptx("f32[1024,1024]", "f32[1024,1024]")
def threads(x, w):
    return jnp.tanh(x @ w)


# Tensor cores: copies beside the products, three depths at a time.
# CHECK-LABEL: TEST: integers
# CHECK: cp.async.cg.shared.global [{{.*}}], 16
# CHECK: ldmatrix.sync.aligned.m8n8.x4
# CHECK: mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32
# CHECK: cp.async.wait_group 	1
# CHECK: st.global.v4.b32
@print_ptx("i8[1024,1024]", "i8[1024,1024]", arch="sm_80")
def integers(x, w):
    return lax.dot(x, w, preferred_element_type=jnp.int32)


# CHECK-LABEL: TEST: tf32
# CHECK: cp.async.cg.shared.global [{{.*}}], 16
# CHECK: ldmatrix.sync.aligned.m8n8.x4
# CHECK: mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32
# CHECK: cp.async.wait_group 	1
@print_ptx("f32[1024,1024]", "f32[1024,1024]", arch="sm_80")
def tf32(x, w):
    return lax.dot(x, w, precision="tensorfloat32")


# CHECK-LABEL: TEST: f8
# CHECK: cp.async.bulk.tensor.2d
# CHECK: wgmma.mma_async.sync.aligned.m64n{{[0-9]+}}k32.f32.e4m3.e4m3
# CHECK: st.global.v4.b32
@print_ptx("f8_e4m3fn[1024,1024]", "f8_e4m3fn[1024,1024]")
def f8(x, w):
    return lax.dot(x, w.T, preferred_element_type=jnp.float32)


# Zeros around an image are not in memory: copies leave them out.
# CHECK-LABEL: TEST: convolution
# CHECK: .entry
# CHECK: cp.async.cg.shared.global [{{.*}}], [{{.*}}], 16, %
# CHECK: ldmatrix.sync.aligned.m8n8.x4
# CHECK: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
# CHECK-NOT: .entry
# CHECK-LABEL: TEST: attention
@print_ptx("bf16[4,32,32,64]", "bf16[3,3,64,64]", arch="sm_80")
def convolution(x, w):
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


# One kernel: scores stay in registers, a row's maximum is found by shuffles in four lanes.
# CHECK: // kernel fused_attention
# CHECK: cp.async.cg.shared.global [{{.*}}], 16
# CHECK: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
# CHECK: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
# CHECK: cp.async.wait_group
# CHECK: shfl.sync.bfly.b32 {{.*}}, 1, 31
# CHECK: shfl.sync.bfly.b32 {{.*}}, 2, 31
# CHECK-NOT: .entry
# CHECK-LABEL: TEST: exact_attention
@print_ptx("bf16[2,512,4,64]", "bf16[2,512,4,64]", "bf16[2,512,4,64]", arch="sm_80")
def attention(q, k, v):
    return lamina.nn.dot_product_attention(q, k, v, is_causal=True)


# f32 by threads: q, k, v and probabilities in shared memory, a row's sum by shuffles in 16 lanes.
# CHECK: // kernel fused_attention
# CHECK: ld.global{{.*}}.v4.b32
# CHECK: st.shared.v4.b32
# CHECK: bar.sync
# CHECK: ld.shared.v4.b32
# CHECK: fma.rn.f32
# CHECK: shfl.sync.bfly.b32 {{.*}}, 8, 31
# CHECK: bar.sync
# CHECK: st.global.v4.b32
# CHECK-NOT: .entry
@print_ptx("f32[2,512,4,64]", "f32[2,512,4,64]", "f32[2,512,4,64]", arch="sm_75")
def exact_attention(q, k, v):
    return lamina.nn.dot_product_attention(q, k, v, is_causal=True)
