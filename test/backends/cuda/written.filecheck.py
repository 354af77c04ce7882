# RUN: %PYTHON %s | FileCheck %s
"""PTX of kernels that are written op by op: what makes each fast."""

from print_ptx import print_ptx

import lamina
import lamina.numpy as jnp
from lamina import lax


# The order is free: atomics. Of floats it is not: updates are sorted in shared memory.
# CHECK-LABEL: TEST: scatter_integers
# CHECK: // kernel fused_scatter
# CHECK: atom.global.add.u32
# CHECK-LABEL: TEST: scatter_floats
# CHECK: // kernel fused_scatter
# CHECK: .shared
# CHECK: bar.sync
# CHECK-NOT: atom.
# CHECK-LABEL: TEST: scan
@print_ptx("i32[3000]")
def scatter_integers(i):
    return jnp.zeros(50, jnp.int32).at[i].add(i)


@print_ptx("i32[3000]", "f32[3000]")
def scatter_floats(i, u):
    return jnp.zeros(50).at[i].add(u)


# 16 bytes a thread, shuffles in a warp, the warps' totals in shared memory.
# CHECK: // kernel fused_reduce_window
# CHECK: ld.global{{.*}}.v4.b32
# CHECK: shfl.sync
# CHECK: st.shared.b32
# CHECK: bar.sync
# CHECK: ld.shared.v4.b32
# CHECK: st.global{{.*}}.v4.b32
@print_ptx("f32[64,4096]")
def scan(x):
    return jnp.cumsum(x, axis=1)


# A long row: blocks take tickets, publish totals and wait for others', 64 bits at once.
# CHECK-LABEL: TEST: long_scan
# CHECK: .entry {{.*}}_0(
# CHECK: st.global.b64
# CHECK: .entry {{.*}}_1(
# CHECK: atom.global.add.u64
# CHECK: ld.global{{.*}}.v4.b32
# CHECK: atom.global.or.b64
# CHECK: atom.global.or.b64 {{.*}}, 0;
# CHECK: st.global.v4.b32
# CHECK-NOT: .entry
@print_ptx("f32[2097152]")
def long_scan(x):
    return jnp.cumsum(x)


# Neighbouring threads do neighbouring columns; many elements of each are under way.
# CHECK-LABEL: TEST: columns_scan
# CHECK: // kernel fused_reduce_window
# CHECK-COUNT-8: ld.global.nc.b32
# CHECK-NOT: bar.sync
# CHECK-LABEL: TEST: top_k
@print_ptx("f32[4096,64]")
def columns_scan(x):
    return lax.cummax(x, axis=0)


# CHECK: // kernel fused_top_k
# CHECK: .shared
# CHECK: bar.sync
# CHECK: ld.shared.b32
# CHECK-NOT: // kernel
@print_ptx("f32[64,1000]")
def top_k(x):
    return lax.top_k(x, 5)


# Long rows are sorted by bits: for each of two bytes a kernel counts in shared memory, one adds up
# over tiles, one moves.
# CHECK-LABEL: TEST: long_sort
# CHECK: .entry {{.*}}_0(
# CHECK: atom.shared.add.u32
# CHECK: .entry {{.*}}_1(
# CHECK: shfl.sync.bfly.b32
# CHECK-NOT: atom
# CHECK: .entry {{.*}}_2(
# CHECK: bar.sync
# CHECK: .entry {{.*}}_5(
# CHECK-NOT: .entry
@print_ptx("i16[4194304]")
def long_sort(x):
    return jnp.sort(x)


# A short transform passes memory once, its steps are in shared memory; a long one's are kernels.
# CHECK-LABEL: TEST: fft
# CHECK: .entry
# CHECK: ld.global.nc.v2.b32
# CHECK: st.shared.v4.b32
# CHECK: bar.sync
# CHECK: ld.shared
# CHECK: bar.sync
# CHECK: st.global.v2.b32
# CHECK-NOT: .entry
# CHECK-LABEL: TEST: long_fft
# CHECK: .entry
# CHECK: st.global.v4.b32
# CHECK: .entry
# CHECK: ld.global.v2.b32
@print_ptx("c64[64,512]")
def fft(x):
    return jnp.fft.fft(x)


@print_ptx("c64[65536]")
def long_fft(x):
    return jnp.fft.fft(x)


# CHECK-LABEL: TEST: triangular
# CHECK: .maxntid 32, 8, 1
# CHECK: ld.global.nc.b32
# CHECK: bar.sync
@print_ptx("f32[64,64]", "f32[64,128]")
def triangular(a, b):
    return lax.linalg.triangular_solve(a, b, left_side=True, lower=True)


# A block for each matrix: the pivot is found in shared memory.
# CHECK-LABEL: TEST: lu
# CHECK: // kernel fused_custom_call
# CHECK: .maxntid 256, 1, 1
# CHECK: st.shared.b32
# CHECK: bar.sync
# CHECK: ld.shared.v4.b32
# CHECK: div.rn.f32
@print_ptx("f32[4,64,64]")
def lu(a):
    return lax.linalg.lu(a)


# Reflectors in a block, then a thread for each column of what they make; a triangle of 16 bytes each.
# CHECK-LABEL: TEST: qr
# CHECK: // kernel fused_custom_call
# CHECK: bar.sync
# CHECK: ld.shared.v4.b32
# CHECK: sqrt.rn.f32
# CHECK: // kernel fused_custom_call
# CHECK-NOT: bar.sync
# CHECK: // kernel fused_select
# CHECK: ld.global.v4.b32
# CHECK: st.global.v4.b32
@print_ptx("f32[4,64,64]")
def qr(a):
    return lax.linalg.qr(a)


# CHECK-LABEL: TEST: eigh
# CHECK: .maxntid 256, 1, 1
# CHECK: bar.sync
# CHECK: ld.shared.v4.b32
# CHECK: sqrt.rn.f32
@print_ptx("f32[4,32,32]")
def eigh(a):
    return lax.linalg.eigh(a, symmetrize_input=False)


# CHECK-LABEL: TEST: svd
# CHECK: .maxntid 256, 1, 1
# CHECK: bar.sync
# CHECK: ld.shared.v4.b32
# CHECK: sqrt.rn.f32
@print_ptx("f32[4,32,32]")
def svd(a):
    return lax.linalg.svd(a)


# A thread for each system.
# CHECK-LABEL: TEST: tridiagonal
# CHECK: // kernel fused_custom_call
# CHECK-NOT: bar.sync
# CHECK: div.rn.f32
# CHECK-NOT: bar.sync
# CHECK-LABEL: TEST: select_and_scatter
@print_ptx("f32[64]", "f32[64,128]")
def tridiagonal(d, b):
    return lax.linalg.tridiagonal_solve(d, d, d, b)


# CHECK: // kernel fused_reduce_window
# CHECK: // kernel fused_scatter
# CHECK: bar.sync
# CHECK-NOT: atom.
@print_ptx("f32[64,64]")
def select_and_scatter(x):
    def pooled(x):
        return jnp.sum(lax.reduce_window(x, -jnp.inf, lax.max, (3, 3), (2, 2), "SAME"))

    return lamina.grad(pooled)(x)
