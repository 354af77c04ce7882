// RUN: %lamina-opt %s --canonicalize --stablehlo-cse --stablehlo-dce --print-ir-after-all -o %t 2>&1 | FileCheck %s --check-prefix=ALL
// RUN: %lamina-opt %s --canonicalize --stablehlo-cse --stablehlo-dce --print-ir-after-change -o %t 2>&1 | FileCheck %s --check-prefix=CHANGE
// RUN: %lamina-opt %s --stablehlo-fuse --cse --timing -o %t 2>&1 | FileCheck %s --check-prefix=TIMING
// RUN: %lamina-opt %s --mlir-print-debuginfo | FileCheck %s --check-prefix=DEBUG
// RUN: %lamina-opt --list-passes | FileCheck %s --check-prefix=LIST

// ALL: IR Dump After canonicalize
// ALL: IR Dump After stablehlo-cse
// ALL: IR Dump After stablehlo-dce

// CHANGE-NOT: After canonicalize
// CHANGE: IR Dump After stablehlo-cse
// CHANGE-NOT: After stablehlo-dce

// TIMING: ms {{.*}}% stablehlo-fuse 1 kernels
// TIMING: ms 100.0% in 2 runs of 2 passes

// DEBUG: "model.py":7:3

// LIST: stablehlo-cse
// LIST-NEXT: Compute each value once
// LIST: stablehlo-fuse
// LIST: options: max-ops=64 (an integer)
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.sine %x : tensor<4xf32> loc("model.py":7:3)
  %1 = stablehlo.sine %x : tensor<4xf32>
  %2 = stablehlo.add %0, %1 : tensor<4xf32>
  return %2 : tensor<4xf32>
}
