// RUN: %lamina-opt %s --gpu-map-to-threads --split-input-file --verify-diagnostics

func.func @loops(%x: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  // expected-error @+1 {{[for] the CUDA backend has no lowering for this op yet}}
  scf.for %i = %c0 to %c4 step %c4 {
    %0 = memref.load %x[%i] : memref<4xf32>
  }
  return
}
