// RUN: %lamina-opt %s --pass-pipeline=linalg-recompute-cheap | FileCheck %s

#full = affine_map<(i, j) -> (i, j)>
#turned = affine_map<(i, j) -> (j, i)>
#first = affine_map<(i, j) -> (i)>

// Each reduction compares anew.
// CHECK-LABEL: func.func @mask
// CHECK-NOT: tensor<8x64xi1>
// CHECK: linalg.generic {{.*}} ins(%arg0 : tensor<8x64xf32>)
// CHECK: arith.cmpf une
// CHECK: arith.andi
// CHECK: linalg.generic {{.*}} ins(%arg0{{.*}} : tensor<8x64xf32>
// CHECK: arith.cmpf une
// CHECK: arith.select
// CHECK: arith.maximumf
func.func @mask(%x: tensor<8x64xf32>, %a: tensor<8xi1>, %m: tensor<8xf32>) -> (tensor<8xi1>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8x64xi1>
  %least = arith.constant 0xFF800000 : f32
  %0 = linalg.generic {indexing_maps = [#full, #full], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x64xf32>) outs(%e : tensor<8x64xi1>) {
  ^bb0(%in: f32, %out: i1):
    %3 = arith.cmpf une, %in, %in : f32
    linalg.yield %3 : i1
  } -> tensor<8x64xi1>
  %1 = linalg.generic {indexing_maps = [#full, #first], iterator_types = ["parallel", "reduction"]} ins(%0 : tensor<8x64xi1>) outs(%a : tensor<8xi1>) {
  ^bb0(%in: i1, %out: i1):
    %3 = arith.andi %out, %in : i1
    linalg.yield %3 : i1
  } -> tensor<8xi1>
  %2 = linalg.generic {indexing_maps = [#full, #full, #first], iterator_types = ["parallel", "reduction"]} ins(%0, %x : tensor<8x64xi1>, tensor<8x64xf32>) outs(%m : tensor<8xf32>) {
  ^bb0(%in: i1, %v: f32, %out: f32):
    %3 = arith.select %in, %least, %v : f32
    %4 = arith.maximumf %out, %3 : f32
    linalg.yield %4 : f32
  } -> tensor<8xf32>
  return %1, %2 : tensor<8xi1>, tensor<8xf32>
}

// A product might be contracted in one loop only; a function is expensive.
// CHECK-LABEL: func.func @kept
// CHECK: arith.mulf
// CHECK: tensor<8x64xf32>
// CHECK: arith.addf
// CHECK-NOT: arith.mulf
// CHECK: math.exp
// CHECK-NOT: math.exp
func.func @kept(%x: tensor<8x64xf32>, %a: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8x64xf32>
  %0 = linalg.generic {indexing_maps = [#full, #full], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x64xf32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %5 = arith.mulf %in, %in : f32
    linalg.yield %5 : f32
  } -> tensor<8x64xf32>
  %1 = linalg.generic {indexing_maps = [#full, #first], iterator_types = ["parallel", "reduction"]} ins(%0 : tensor<8x64xf32>) outs(%a : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %5 = arith.addf %out, %in : f32
    linalg.yield %5 : f32
  } -> tensor<8xf32>
  %2 = linalg.generic {indexing_maps = [#full, #first], iterator_types = ["parallel", "reduction"]} ins(%0 : tensor<8x64xf32>) outs(%a : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %5 = arith.maximumf %out, %in : f32
    linalg.yield %5 : f32
  } -> tensor<8xf32>
  %f = linalg.generic {indexing_maps = [#full, #full], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x64xf32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %5 = math.exp %in : f32
    linalg.yield %5 : f32
  } -> tensor<8x64xf32>
  %3 = linalg.generic {indexing_maps = [#full, #first], iterator_types = ["parallel", "reduction"]} ins(%f : tensor<8x64xf32>) outs(%a : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %5 = arith.addf %out, %in : f32
    linalg.yield %5 : f32
  } -> tensor<8xf32>
  %4 = linalg.generic {indexing_maps = [#full, #first], iterator_types = ["parallel", "reduction"]} ins(%f : tensor<8x64xf32>) outs(%a : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %5 = arith.maximumf %out, %in : f32
    linalg.yield %5 : f32
  } -> tensor<8xf32>
  return %1, %2, %3, %4 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// What is turned on the way, is a result, too, or belongs to a larger space of loops, stays in memory.
// CHECK-LABEL: func.func @in_memory
// CHECK-COUNT-3: arith.negf
// CHECK-NOT: arith.negf
func.func @in_memory(%x: tensor<64x64xf32>, %a: tensor<64xf32>, %p: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64x64xf32>) {
  %e = tensor.empty() : tensor<64x64xf32>
  %0 = linalg.generic {indexing_maps = [#full, #full], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %7 = arith.negf %in : f32
    linalg.yield %7 : f32
  } -> tensor<64x64xf32>
  %1 = linalg.generic {indexing_maps = [#full, #first], iterator_types = ["parallel", "reduction"]} ins(%0 : tensor<64x64xf32>) outs(%a : tensor<64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %7 = arith.addf %out, %in : f32
    linalg.yield %7 : f32
  } -> tensor<64xf32>
  %2 = linalg.generic {indexing_maps = [#turned, #full], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %7 = arith.negf %in : f32
    linalg.yield %7 : f32
  } -> tensor<64x64xf32>
  %3 = linalg.generic {indexing_maps = [#full, #first], iterator_types = ["parallel", "reduction"]} ins(%2 : tensor<64x64xf32>) outs(%a : tensor<64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %7 = arith.addf %out, %in : f32
    linalg.yield %7 : f32
  } -> tensor<64xf32>
  %4 = linalg.generic {indexing_maps = [#full, #first], iterator_types = ["parallel", "reduction"]} ins(%2 : tensor<64x64xf32>) outs(%a : tensor<64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %7 = arith.maximumf %out, %in : f32
    linalg.yield %7 : f32
  } -> tensor<64xf32>
  %5 = linalg.generic {indexing_maps = [#full, #full], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %7 = arith.negf %in : f32
    linalg.yield %7 : f32
  } -> tensor<64x64xf32>
  %6 = linalg.generic {
    indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>],
    iterator_types = ["parallel", "parallel", "reduction"]
  } ins(%5, %5 : tensor<64x64xf32>, tensor<64x64xf32>) outs(%p : tensor<64x64xf32>) {
  ^bb0(%l: f32, %r: f32, %out: f32):
    %7 = arith.mulf %l, %r : f32
    %8 = arith.addf %out, %7 : f32
    linalg.yield %8 : f32
  } -> tensor<64x64xf32>
  return %0, %1, %3, %4, %6 : tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64x64xf32>
}

// Which elements come before a place is compared in each loop.
// CHECK-LABEL: func.func @before
// CHECK-NOT: tensor<64xi1>
// CHECK-COUNT-2: arith.cmpi slt
// CHECK: return
func.func @before(%end: tensor<i64>, %x: tensor<64xf32>) -> (tensor<64xf32>, tensor<f32>) {
  %e = tensor.empty() : tensor<64xi1>
  %f = tensor.empty() : tensor<64xf32>
  %zero = arith.constant 0.0 : f32
  %sum = arith.constant dense<0.0> : tensor<f32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> ()>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%end : tensor<i64>) outs(%e : tensor<64xi1>) {
  ^bb0(%in: i64, %out: i1):
    %n = linalg.index 0 : index
    %i = arith.index_cast %n : index to i64
    %c = arith.cmpi slt, %i, %in : i64
    linalg.yield %c : i1
  } -> tensor<64xi1>
  %1 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%0, %x : tensor<64xi1>, tensor<64xf32>) outs(%f : tensor<64xf32>) {
  ^bb0(%in: i1, %v: f32, %out: f32):
    %s = arith.select %in, %v, %zero : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]} ins(%0, %x : tensor<64xi1>, tensor<64xf32>) outs(%sum : tensor<f32>) {
  ^bb0(%in: i1, %v: f32, %out: f32):
    %s = arith.select %in, %v, %zero : f32
    %a = arith.addf %out, %s : f32
    linalg.yield %a : f32
  } -> tensor<f32>
  return %1, %2 : tensor<64xf32>, tensor<f32>
}
