// RUN: %lamina-opt %s --gpu-serial-loops | FileCheck %s

// Few steps are unrolled, the innermost first.
// CHECK-LABEL: func.func @few
// CHECK-NOT: scf.for
// CHECK: memref.load %arg0[%[[ZERO:.*]]]
// CHECK: math.exp
// CHECK: memref.store {{.*}}, %arg1[%[[ZERO]]]
// CHECK: math.exp
// CHECK-NOT: linalg.generic
func.func @few(%x: memref<2xf32>, %y: memref<2xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : memref<2xf32>) outs(%y : memref<2xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = math.exp %in : f32
    linalg.yield %0 : f32
  }
  return
}

// A reduction reads what it wrote before.
// CHECK-LABEL: func.func @many
// CHECK: scf.for %[[I:.*]] =
// CHECK: memref.load %arg1[]
// CHECK: memref.load %arg0[%[[I]], %{{.*}}]
// CHECK: memref.store {{.*}}, %arg1[]
// CHECK: memref.load %arg1[]
func.func @many(%x: memref<100x2xf32>, %y: memref<f32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ()>],
                  iterator_types = ["reduction", "reduction"]}
      ins(%x : memref<100x2xf32>) outs(%y : memref<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %in, %out : f32
    linalg.yield %0 : f32
  }
  return
}
