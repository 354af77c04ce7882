// RUN: %lamina-opt %s --pass-pipeline=math-allow-contraction | FileCheck %s

// CHECK-LABEL: func.func @marks
func.func @marks(%a: f32, %b: f32) -> f32 {
  // CHECK: arith.mulf %{{.*}}, %{{.*}} fastmath<contract>
  %0 = arith.mulf %a, %b : f32
  // CHECK: arith.addf %{{.*}}, %{{.*}} fastmath<reassoc,contract>
  %1 = arith.addf %0, %b fastmath<reassoc> : f32
  // CHECK: arith.divf %{{.*}}, %{{.*}} : f32
  %2 = arith.divf %1, %b : f32
  return %2 : f32
}
