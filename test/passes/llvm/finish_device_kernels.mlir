// RUN: %lamina-opt %s --llvm-finish-device-kernels | FileCheck %s

// CHECK: llvm.func internal @helper(%{{.*}}: f32) -> f32 attributes {always_inline
llvm.func @helper(%x: f32) -> f32 {
  llvm.return %x : f32
}

// CHECK: llvm.func @kernel(%{{.*}}: !llvm.ptr {llvm.align = 16 : i64, llvm.noalias}
// CHECK-SAME: nvvm.kernel, nvvm.maxntid = array<i32: 256, 1, 1>
llvm.func @kernel(%x: !llvm.ptr) attributes {lamina.block = array<i32: 256, 1, 1>} {
  llvm.return
}
