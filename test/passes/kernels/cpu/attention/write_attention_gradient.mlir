// RUN: %lamina-opt %s --machine=reference,parallel_ns=1000,task_ns=1000 --pass-pipeline='cpu-write-attention-gradient' | FileCheck %s --check-prefixes=CHECK,F32
// RUN: %lamina-opt %s --machine=reference,parallel_ns=1000,task_ns=1000 --pass-pipeline='cpu-write-attention-gradient{features=amx-bf16+avx512bf16}' | FileCheck %s --check-prefixes=CHECK,TILES

// Four parts of the queries for each batch, of one block each, add to keys' rows of their own. Exponentials
// and the products with values are kept from sweep to sweep for each of the tasks.
// CHECK-LABEL: func.func @gradient
// CHECK-SAME: (%[[Q:.*]]: memref<2x128x16xf32>, %[[K:.*]]: memref<2x64x16xf32>, %[[V:.*]]: memref<2x64x16xf32>, %[[G:.*]]: memref<2x128x16xf32>, %[[DV:.*]]: memref<2x64x16xf32>, %[[DK:.*]]: memref<2x64x16xf32>, %[[DQ:.*]]: memref<2x128x16xf32>)
// CHECK: %[[E:.*]] = memref.alloc() : memref<8x64x32xf32>
// CHECK: %[[DP:.*]] = memref.alloc() : memref<8x64x32xf32>
// CHECK: memref.alloc() : memref<8x64x16xf32>
// CHECK: memref.alloc() : memref<8x64x16xf32>
// CHECK-NOT: memref<{{.*}}128x64xf32>
// CHECK: scf.forall
// Scores, and their maximum.
// CHECK: vector.shuffle
// CHECK: memref.load %[[K]]
// CHECK: vector.fma {{.*}} : vector<16xf32>
// CHECK: vector.store {{.*}}, %[[E]]
// CHECK: arith.maximumf
// Exponentials in their place, and sums.
// CHECK: memref.load %[[E]]
// CHECK: stablehlo.exponential {{.*}} : tensor<f32>
// CHECK: arith.addf
// CHECK: memref.store {{.*}}, %[[E]]
// CHECK: memref.load %[[V]]
// CHECK: vector.fma {{.*}} : vector<16xf32>
// CHECK: vector.store {{.*}}, %[[DP]]
// Products of the last sweep, with rows of the gradient and of queries, and with keys.
// CHECK-NOT: stablehlo.exponential
// CHECK: vector.load %[[G]]
// CHECK: vector.load %[[Q]]
// CHECK: vector.load %[[K]]
// CHECK: memref.store {{.*}}, %[[DQ]]
// Parts are added up.
// CHECK: scf.forall
// CHECK-COUNT-3: arith.addf
// CHECK: memref.store {{.*}}, %[[DV]]
func.func @gradient(%q: tensor<2x128x16xf32>, %k: tensor<2x64x16xf32>, %v: tensor<2x64x16xf32>, %g: tensor<2x128x16xf32>)
    -> (tensor<2x64x16xf32>, tensor<2x64x16xf32>, tensor<2x128x16xf32>) attributes {lamina.kind = "attention_gradient"} {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x128x16xf32>, tensor<2x64x16xf32>) -> tensor<2x128x64xf32>
  %m = stablehlo.reduce(%s init: %least) applies stablehlo.maximum across dimensions = [2] : (tensor<2x128x64xf32>, tensor<f32>) -> tensor<2x128xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<2x128xf32>) -> tensor<2x128x64xf32>
  %d = stablehlo.subtract %s, %mb : tensor<2x128x64xf32>
  %e = stablehlo.exponential %d : tensor<2x128x64xf32>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x128x64xf32>, tensor<f32>) -> tensor<2x128xf32>
  %lb = stablehlo.broadcast_in_dim %l, dims = [0, 1] : (tensor<2x128xf32>) -> tensor<2x128x64xf32>
  %p = stablehlo.divide %e, %lb : tensor<2x128x64xf32>
  %dv = stablehlo.dot_general %p, %g, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<2x128x64xf32>, tensor<2x128x16xf32>) -> tensor<2x64x16xf32>
  %dp = stablehlo.dot_general %g, %v, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x128x16xf32>, tensor<2x64x16xf32>) -> tensor<2x128x64xf32>
  %x = stablehlo.multiply %dp, %p : tensor<2x128x64xf32>
  %t = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x128x64xf32>, tensor<f32>) -> tensor<2x128xf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0, 1] : (tensor<2x128xf32>) -> tensor<2x128x64xf32>
  %y = stablehlo.subtract %dp, %tb : tensor<2x128x64xf32>
  %ds = stablehlo.multiply %y, %p : tensor<2x128x64xf32>
  %dk = stablehlo.dot_general %ds, %q, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<2x128x64xf32>, tensor<2x128x16xf32>) -> tensor<2x64x16xf32>
  %dq = stablehlo.dot_general %ds, %k, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x128x64xf32>, tensor<2x64x16xf32>) -> tensor<2x128x16xf32>
  return %dv, %dk, %dq : tensor<2x64x16xf32>, tensor<2x64x16xf32>, tensor<2x128x16xf32>
}

// Keys behind the last query are left out of each sweep.
// CHECK-LABEL: func.func @causal
// CHECK: %[[SEEN:.*]] = scf.while
// CHECK: %[[END:.*]] = arith.muli %[[SEEN]]
// CHECK-COUNT-4: arith.minui {{.*}}, %[[END]]
func.func @causal(%q: tensor<2x128x16xf32>, %k: tensor<2x64x16xf32>, %v: tensor<2x64x16xf32>, %g: tensor<2x128x16xf32>)
    -> (tensor<2x64x16xf32>, tensor<2x64x16xf32>, tensor<2x128x16xf32>) attributes {lamina.kind = "attention_gradient"} {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x128x16xf32>, tensor<2x64x16xf32>) -> tensor<2x128x64xf32>
  %i = stablehlo.iota dim = 1 : tensor<2x128x64xi32>
  %j = stablehlo.iota dim = 2 : tensor<2x128x64xi32>
  %seen = stablehlo.compare GE, %i, %j, SIGNED : (tensor<2x128x64xi32>, tensor<2x128x64xi32>) -> tensor<2x128x64xi1>
  %low = stablehlo.constant dense<0xFF800000> : tensor<2x128x64xf32>
  %hidden = stablehlo.select %seen, %s, %low : tensor<2x128x64xi1>, tensor<2x128x64xf32>
  %m = stablehlo.reduce(%hidden init: %least) applies stablehlo.maximum across dimensions = [2] : (tensor<2x128x64xf32>, tensor<f32>) -> tensor<2x128xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<2x128xf32>) -> tensor<2x128x64xf32>
  %d = stablehlo.subtract %hidden, %mb : tensor<2x128x64xf32>
  %e = stablehlo.exponential %d : tensor<2x128x64xf32>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x128x64xf32>, tensor<f32>) -> tensor<2x128xf32>
  %lb = stablehlo.broadcast_in_dim %l, dims = [0, 1] : (tensor<2x128xf32>) -> tensor<2x128x64xf32>
  %p = stablehlo.divide %e, %lb : tensor<2x128x64xf32>
  %dv = stablehlo.dot_general %p, %g, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<2x128x64xf32>, tensor<2x128x16xf32>) -> tensor<2x64x16xf32>
  %dp = stablehlo.dot_general %g, %v, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x128x16xf32>, tensor<2x64x16xf32>) -> tensor<2x128x64xf32>
  %x = stablehlo.multiply %dp, %p : tensor<2x128x64xf32>
  %t = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x128x64xf32>, tensor<f32>) -> tensor<2x128xf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0, 1] : (tensor<2x128xf32>) -> tensor<2x128x64xf32>
  %y = stablehlo.subtract %dp, %tb : tensor<2x128x64xf32>
  %ds = stablehlo.multiply %y, %p : tensor<2x128x64xf32>
  %dk = stablehlo.dot_general %ds, %q, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<2x128x64xf32>, tensor<2x128x16xf32>) -> tensor<2x64x16xf32>
  %dq = stablehlo.dot_general %ds, %k, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x128x64xf32>, tensor<2x64x16xf32>) -> tensor<2x128x16xf32>
  return %dv, %dk, %dq : tensor<2x64x16xf32>, tensor<2x64x16xf32>, tensor<2x128x16xf32>
}

// What is made of hidden scores is not zero.
// CHECK-LABEL: func.func @not_zero
// CHECK-NOT: scf.while
func.func @not_zero(%q: tensor<2x128x16xf32>, %k: tensor<2x64x16xf32>, %v: tensor<2x64x16xf32>, %g: tensor<2x128x16xf32>)
    -> (tensor<2x64x16xf32>, tensor<2x64x16xf32>, tensor<2x128x16xf32>) attributes {lamina.kind = "attention_gradient"} {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x128x16xf32>, tensor<2x64x16xf32>) -> tensor<2x128x64xf32>
  %i = stablehlo.iota dim = 1 : tensor<2x128x64xi32>
  %j = stablehlo.iota dim = 2 : tensor<2x128x64xi32>
  %seen = stablehlo.compare GE, %i, %j, SIGNED : (tensor<2x128x64xi32>, tensor<2x128x64xi32>) -> tensor<2x128x64xi1>
  %low = stablehlo.constant dense<0xFF800000> : tensor<2x128x64xf32>
  %hidden = stablehlo.select %seen, %s, %low : tensor<2x128x64xi1>, tensor<2x128x64xf32>
  %m = stablehlo.reduce(%hidden init: %least) applies stablehlo.maximum across dimensions = [2] : (tensor<2x128x64xf32>, tensor<f32>) -> tensor<2x128xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<2x128xf32>) -> tensor<2x128x64xf32>
  %d = stablehlo.subtract %hidden, %mb : tensor<2x128x64xf32>
  %e = stablehlo.exponential %d : tensor<2x128x64xf32>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x128x64xf32>, tensor<f32>) -> tensor<2x128xf32>
  %lb = stablehlo.broadcast_in_dim %l, dims = [0, 1] : (tensor<2x128xf32>) -> tensor<2x128x64xf32>
  %p = stablehlo.divide %e, %lb : tensor<2x128x64xf32>
  %dv = stablehlo.dot_general %p, %g, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<2x128x64xf32>, tensor<2x128x16xf32>) -> tensor<2x64x16xf32>
  %dp = stablehlo.dot_general %g, %v, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x128x16xf32>, tensor<2x64x16xf32>) -> tensor<2x128x64xf32>
  %x = stablehlo.multiply %dp, %p : tensor<2x128x64xf32>
  %t = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x128x64xf32>, tensor<f32>) -> tensor<2x128xf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0, 1] : (tensor<2x128xf32>) -> tensor<2x128x64xf32>
  %y = stablehlo.subtract %dp, %tb : tensor<2x128x64xf32>
  %ds = stablehlo.add %y, %p : tensor<2x128x64xf32>
  %dk = stablehlo.dot_general %ds, %q, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<2x128x64xf32>, tensor<2x128x16xf32>) -> tensor<2x64x16xf32>
  %dq = stablehlo.dot_general %ds, %k, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x128x64xf32>, tensor<2x64x16xf32>) -> tensor<2x128x16xf32>
  return %dv, %dk, %dq : tensor<2x64x16xf32>, tensor<2x64x16xf32>, tensor<2x128x16xf32>
}

// Of bf16, all products are done in tiles, those with the scores twice rather than kept; exponentials are.
// Probabilities and the scores' gradient are rounded by the processor. Without tiles they are not.
// CHECK-LABEL: func.func @pairs
// CHECK-SAME: (%[[Q:.*]]: memref<2x128x16xbf16>, %[[K:.*]]: memref<2x64x16xbf16>, %[[V:.*]]: memref<2x64x16xbf16>, %[[G:.*]]: memref<2x128x16xbf16>, %[[DV:.*]]: memref<2x64x16xbf16>, %[[DK:.*]]: memref<2x64x16xbf16>, %[[DQ:.*]]: memref<2x128x16xbf16>)
// TILES: %[[E:.*]] = memref.alloc() : memref<4x64x64xf32>
// TILES: %[[TURNED:.*]] = memref.alloc() : memref<4x16x96xbf16>
// TILES: scf.forall
// TILES: vector.store {{.*}}, %[[TURNED]]
// TILES: llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// TILES: arith.maximumf
// TILES: llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// TILES: llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// TILES: memref.store {{.*}}, %[[E]]
// TILES: llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// TILES: memref.load %[[E]]
// TILES-COUNT-2: arith.truncf {{.*}} {lamina.native} : f32 to bf16
// TILES-COUNT-3: llvm.call_intrinsic "llvm.x86.ldtilecfg"
// TILES: llvm.call_intrinsic "llvm.x86.tilerelease"
// F32-NOT: tdpbf16ps
// F32-NOT: lamina.native
func.func @pairs(%q: tensor<2x128x16xbf16>, %k: tensor<2x64x16xbf16>, %v: tensor<2x64x16xbf16>, %g: tensor<2x128x16xbf16>)
    -> (tensor<2x64x16xbf16>, tensor<2x64x16xbf16>, tensor<2x128x16xbf16>) attributes {lamina.kind = "attention_gradient"} {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x128x16xbf16>, tensor<2x64x16xbf16>) -> tensor<2x128x64xf32>
  %m = stablehlo.reduce(%s init: %least) applies stablehlo.maximum across dimensions = [2] : (tensor<2x128x64xf32>, tensor<f32>) -> tensor<2x128xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<2x128xf32>) -> tensor<2x128x64xf32>
  %d = stablehlo.subtract %s, %mb : tensor<2x128x64xf32>
  %e = stablehlo.exponential %d : tensor<2x128x64xf32>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x128x64xf32>, tensor<f32>) -> tensor<2x128xf32>
  %lb = stablehlo.broadcast_in_dim %l, dims = [0, 1] : (tensor<2x128xf32>) -> tensor<2x128x64xf32>
  %p = stablehlo.divide %e, %lb : tensor<2x128x64xf32>
  %pn = stablehlo.convert %p : (tensor<2x128x64xf32>) -> tensor<2x128x64xbf16>
  %dv = stablehlo.dot_general %pn, %g, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<2x128x64xbf16>, tensor<2x128x16xbf16>) -> tensor<2x64x16xbf16>
  %dp = stablehlo.dot_general %g, %v, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x128x16xbf16>, tensor<2x64x16xbf16>) -> tensor<2x128x64xf32>
  %x = stablehlo.multiply %dp, %e : tensor<2x128x64xf32>
  %t = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x128x64xf32>, tensor<f32>) -> tensor<2x128xf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0, 1] : (tensor<2x128xf32>) -> tensor<2x128x64xf32>
  %y = stablehlo.subtract %dp, %tb : tensor<2x128x64xf32>
  %ds = stablehlo.multiply %y, %p : tensor<2x128x64xf32>
  %dsn = stablehlo.convert %ds : (tensor<2x128x64xf32>) -> tensor<2x128x64xbf16>
  %dk = stablehlo.dot_general %dsn, %q, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<2x128x64xbf16>, tensor<2x128x16xbf16>) -> tensor<2x64x16xbf16>
  %dq = stablehlo.dot_general %dsn, %k, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x128x64xbf16>, tensor<2x64x16xbf16>) -> tensor<2x128x16xbf16>
  return %dv, %dk, %dq : tensor<2x64x16xbf16>, tensor<2x64x16xbf16>, tensor<2x128x16xbf16>
}

// CHECK-LABEL: func.func @other
// CHECK: stablehlo.add
func.func @other(%x: tensor<4xf32>) -> tensor<4xf32> attributes {lamina.kind = "loop"} {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
