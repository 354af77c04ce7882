# RUN: %PYTHON %s | FileCheck %s
"""Vector IR of what picks, adds up by indices, scans and sorts, and of random numbers.

Where elements go one by one by their nature, the indices are made ready in vectors."""

from print_loops import print_loops

import lamina
import lamina.numpy as jnp
from lamina import lax


# CHECK-LABEL: TEST: gathered_sum
# CHECK-NEXT: kernel input : compare add select gather reduce
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: masked.gather.v
# CHECK-NOT: no vectors:
@print_loops("f32[65536]", "i32[65536]")
def gathered_sum(x, i):
    return x[i].sum()


# Both indices, counted from the end where they are negative, are joined in the kernel that reads.
# CHECK-LABEL: TEST: pairs
# CHECK-NEXT: kernel loop
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: masked.gather.v
@print_loops("f32[64,64]", "i32[65536]", "i32[65536]")
def pairs(x, i, j):
    return x[i, j]


# CHECK-LABEL: TEST: scatter_add
# CHECK-NEXT: kernel loop : compare add select
# CHECK-NEXT: kernel update : scatter
# CHECK-NOT: kernel
# CHECK: full vectors:
# CHECK: load <{{[0-9]+}} x i32>
@print_loops("f32[65536]", "i32[65536]", "f32[65536]")
def scatter_add(x, i, u):
    return x.at[i].add(u)


# The updates go one by one into a task's copies of the sums, which are cleared and added up in vectors.
# CHECK-LABEL: TEST: segment_sum
# CHECK-NEXT: kernel loop : broadcast_in_dim
# CHECK-NEXT: kernel update : compare add select scatter
# CHECK-NOT: kernel
# CHECK: full vectors:
# CHECK: store <{{[0-9]+}} x float>
# CHECK: full vectors:
# CHECK: fadd {{.*}}<{{[0-9]+}} x float>
@print_loops("f32[65536]", "i32[65536]")
def segment_sum(x, i):
    return jnp.zeros(1024).at[i].add(x)


# The sums of blocks, of which there are few, are added up one by one in between.
# CHECK-LABEL: TEST: cumsum
# CHECK-NEXT: kernel library lamina.scan
# CHECK-NOT: kernel
# CHECK: full vectors:
# CHECK: fadd {{.*}}<{{[0-9]+}} x {{float|double}}>
# CHECK: full vectors:
# CHECK: fadd {{.*}}<{{[0-9]+}} x {{float|double}}>
# CHECK: full vectors:
@print_loops("f32[65536]")
def cumsum(x):
    return jnp.cumsum(x)


# CHECK-LABEL: TEST: normals
# CHECK-NEXT: kernel loop : 
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: fshl.v
# CHECK: fmul {{.*}}<{{[0-9]+}} x float>
# CHECK-NOT: no vectors:
@print_loops("u32[2]")
def normals(k):
    return lamina.random.normal(lamina.random.wrap_key_data(k), (65536,))


# By the runtime, radix by radix (runtime/src/cpu/sort.cpp): nothing is generated that compares.
# CHECK-LABEL: TEST: sort
# CHECK-NEXT: kernel library lamina.sort
# CHECK-NOT: kernel
# CHECK-NOT: vectors:
@print_loops("f32[65536]")
def sort(x):
    return jnp.sort(x)


# CHECK-LABEL: TEST: argsort
# CHECK-NEXT: kernel loop : iota
# CHECK-NEXT: kernel library lamina.sort
# CHECK-NOT: kernel
# CHECK-NOT: no vectors:
# CHECK: full vectors:
# CHECK: store <{{[0-9]+}} x i32>
# CHECK-NOT: no vectors:
@print_loops("f32[65536]")
def argsort(x):
    return jnp.argsort(x)


# CHECK-LABEL: TEST: top_k
# CHECK-NEXT: kernel library lamina.top_k
# CHECK-NOT: kernel
# CHECK-NOT: vectors:
@print_loops("f32[64,1024]")
def top_k(x):
    return lax.top_k(x, 16)
