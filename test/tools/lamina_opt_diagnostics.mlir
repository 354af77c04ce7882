// RUN: %lamina-opt %s --split-input-file --verify-diagnostics
// RUN: sed -e 's/same shape/same colour/' %s > %t.mlir
// RUN: not %lamina-opt %t.mlir --split-input-file --verify-diagnostics 2>&1 | FileCheck %s

// CHECK: expected error was not produced: requires the same colour
// CHECK-NEXT: unexpected error: {{.*}}requires the same shape

func.func @main(%x: tensor<2xf32>) -> tensor<3xf32> {
  // expected-error @+1 {{requires the same shape}}
  %0 = "stablehlo.add"(%x, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %y : tensor<2xf32>
  // expected-error @above {{undeclared SSA value}}
}

// -----

// A part without an error.
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
