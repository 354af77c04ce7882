// RUN: %python -m lamina.tools.lamina_compile %s --target cpu:x86-64-v4 --emit llvm | FileCheck %s

// Small matrices are factored in registers: every instruction does one of as many matrices as a
// vector has lanes, and no lane takes a branch of its own.
// CHECK: define {{.*}} @task(
// CHECK: call <[[N:[0-9]+]] x float> @llvm.masked.gather
// CHECK: fcmp ogt <[[N]] x float>
// CHECK: select <[[N]] x i1>
// CHECK: fdiv <[[N]] x float>
// CHECK: fsub contract <[[N]] x float>
// CHECK-NOT: fsub contract float
// CHECK: call void @llvm.masked.scatter
func.func public @main(%a: tensor<64x3x3xf32>) -> (tensor<64x3x3xf32>, tensor<64x3xi32>) {
  %0:3 = stablehlo.custom_call @lamina.lapack.getrf(%a) : (tensor<64x3x3xf32>) -> (tensor<64x3x3xf32>, tensor<64x3xi32>, tensor<64x3xi32>)
  return %0#0, %0#1 : tensor<64x3x3xf32>, tensor<64x3xi32>
}
