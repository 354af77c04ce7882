// RUN: %lamina-opt %s --gpu-to-nvvm | FileCheck %s

// CHECK-NOT: gpu.module
// CHECK: memref.global "private" @shared : memref<4xf32, 3> = uninitialized
// CHECK: func.func @f(%{{.*}}: memref<64xf32>) attributes {lamina.block = array<i32: 64, 2, 1>}
// CHECK: nvvm.read.ptx.sreg.tid.y : i32
// CHECK: arith.index_castui
// CHECK: nvvm.read.ptx.sreg.ctaid.x : i32
// CHECK: nvvm.barrier
// CHECK: nvvm.shfl.sync bfly
// CHECK: return
gpu.module @kernels {
  memref.global "private" @shared : memref<4xf32, 3> = uninitialized
  gpu.func @f(%x: memref<64xf32>) kernel
      attributes {known_block_size = array<i32: 64, 2, 1>, known_grid_size = array<i32: 1, 1, 1>} {
    %t = gpu.thread_id y
    %b = gpu.block_id x
    %v = memref.load %x[%t] : memref<64xf32>
    gpu.barrier
    %o = arith.constant 16 : i32
    %w = arith.constant 32 : i32
    %s, %valid = gpu.shuffle xor %v, %o, %w : f32
    memref.store %s, %x[%b] : memref<64xf32>
    gpu.return
  }
}
