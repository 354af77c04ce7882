// RUN: %lamina-opt %s --machine=reference,parallel_ns=1000,task_ns=1000 --pass-pipeline='cpu-write-attention' | FileCheck %s --check-prefixes=CHECK,F32
// RUN: %lamina-opt %s --machine=reference,parallel_ns=1000,task_ns=1000 --pass-pipeline='cpu-write-attention{features=amx-bf16+avx512bf16}' | FileCheck %s --check-prefixes=CHECK,TILES
// RUN: %lamina-opt %s --machine=reference,parallel_ns=1000,task_ns=1000 --pass-pipeline='cpu-write-attention{features=avx512bf16}' | FileCheck %s --check-prefixes=CHECK,F32

// Blocks of 32 queries are tasks. Of each, queries are turned; for 64 keys at a time scores are summed
// up in registers, halved, and made exponentials; their products with v are added to totals that are
// scaled down first. No buffer holds all scores.
// CHECK-LABEL: func.func @attention
// CHECK-SAME: (%[[Q:.*]]: memref<2x64x16xf32>, %[[K:.*]]: memref<2x128x16xf32>, %[[V:.*]]: memref<2x128x32xf32>, %[[O:.*]]: memref<2x64x32xf32>)
// CHECK: scf.forall
// CHECK: %[[TURNED:.*]] = memref.alloc() : memref<16x32xf32>
// CHECK: %[[SCORES:.*]] = memref.alloc() : memref<64x32xf32>
// CHECK: %[[TOTALS:.*]] = memref.alloc() : memref<32x32xf32>
// CHECK: vector.shuffle
// CHECK: scf.for {{.*}} iter_args(
// CHECK: vector.load %[[TURNED]][{{.*}}] : memref<16x32xf32>, vector<16xf32>
// CHECK: memref.load %[[K]]
// CHECK: vector.fma {{.*}} : vector<16xf32>
// CHECK: vector.store {{.*}}, %[[SCORES]]
// CHECK: stablehlo.multiply {{.*}} : tensor<f32>
// CHECK: math.exp
// CHECK: arith.mulf {{.*}} : vector<16xf32>
// CHECK: vector.load %[[V]]
// CHECK: memref.load %[[SCORES]]
// CHECK: vector.fma {{.*}} : vector<16xf32>
// CHECK: vector.store {{.*}}, %[[TOTALS]]
// CHECK: memref.store {{.*}}, %[[O]]
func.func @attention(%q: tensor<2x64x16xf32>, %k: tensor<2x128x16xf32>, %v: tensor<2x128x32xf32>) -> tensor<2x64x32xf32> attributes {lamina.kind = "attention"} {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x64x16xf32>, tensor<2x128x16xf32>) -> tensor<2x64x128xf32>
  %half = stablehlo.constant dense<5.0e-01> : tensor<2x64x128xf32>
  %t = stablehlo.multiply %s, %half : tensor<2x64x128xf32>
  %m = stablehlo.reduce(%t init: %least) applies stablehlo.maximum across dimensions = [2] : (tensor<2x64x128xf32>, tensor<f32>) -> tensor<2x64xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<2x64xf32>) -> tensor<2x64x128xf32>
  %d = stablehlo.subtract %t, %mb : tensor<2x64x128xf32>
  %e = stablehlo.exponential %d : tensor<2x64x128xf32>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x64x128xf32>, tensor<f32>) -> tensor<2x64xf32>
  %lb = stablehlo.broadcast_in_dim %l, dims = [0, 1] : (tensor<2x64xf32>) -> tensor<2x64x128xf32>
  %p = stablehlo.divide %e, %lb : tensor<2x64x128xf32>
  %o = stablehlo.dot_general %p, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x64x128xf32>, tensor<2x128x32xf32>) -> tensor<2x64x32xf32>
  return %o : tensor<2x64x32xf32>
}

// Blocks of keys are dropped from the end as long as all of them come after the last query.
// CHECK-LABEL: func.func @causal
// CHECK: %[[SEEN:.*]] = scf.while
// CHECK: %[[END:.*]] = arith.muli %[[SEEN]]
// CHECK: %[[HIGH:.*]] = arith.minui {{.*}}, %[[END]]
// CHECK: scf.for {{.*}} to %[[HIGH]]
func.func @causal(%q: tensor<2x64x16xf32>, %k: tensor<2x128x16xf32>, %v: tensor<2x128x32xf32>) -> tensor<2x64x32xf32> attributes {lamina.kind = "attention"} {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x64x16xf32>, tensor<2x128x16xf32>) -> tensor<2x64x128xf32>
  %half = stablehlo.constant dense<5.0e-01> : tensor<2x64x128xf32>
  %t = stablehlo.multiply %s, %half : tensor<2x64x128xf32>
  %i = stablehlo.iota dim = 1 : tensor<2x64x128xi32>
  %j = stablehlo.iota dim = 2 : tensor<2x64x128xi32>
  %seen = stablehlo.compare GE, %i, %j, SIGNED : (tensor<2x64x128xi32>, tensor<2x64x128xi32>) -> tensor<2x64x128xi1>
  %low = stablehlo.constant dense<0xFF800000> : tensor<2x64x128xf32>
  %hidden = stablehlo.select %seen, %t, %low : tensor<2x64x128xi1>, tensor<2x64x128xf32>
  %m = stablehlo.reduce(%hidden init: %least) applies stablehlo.maximum across dimensions = [2] : (tensor<2x64x128xf32>, tensor<f32>) -> tensor<2x64xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<2x64xf32>) -> tensor<2x64x128xf32>
  %d = stablehlo.subtract %hidden, %mb : tensor<2x64x128xf32>
  %e = stablehlo.exponential %d : tensor<2x64x128xf32>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x64x128xf32>, tensor<f32>) -> tensor<2x64xf32>
  %lb = stablehlo.broadcast_in_dim %l, dims = [0, 1] : (tensor<2x64xf32>) -> tensor<2x64x128xf32>
  %p = stablehlo.divide %e, %lb : tensor<2x64x128xf32>
  %o = stablehlo.dot_general %p, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x64x128xf32>, tensor<2x128x32xf32>) -> tensor<2x64x32xf32>
  return %o : tensor<2x64x32xf32>
}

// Products of bf16 have queries and probabilities as words of pairs, and values turned; rows of k are read
// where they lie. Sums of values are turned back in the end. Without tiles all is widened.
// CHECK-LABEL: func.func @bf16
// CHECK-SAME: (%[[Q:.*]]: memref<2x64x32xbf16>, %[[K:.*]]: memref<2x128x32xbf16>, %[[V:.*]]: memref<2x128x16xbf16>,
// TILES: %[[SCORES:.*]] = memref.alloc() : memref<128x32xf32>
// TILES: %[[PROBABILITIES:.*]] = memref.alloc() : memref<64x32xi32>
// TILES: %[[TURNED:.*]] = memref.alloc() : memref<16x128xbf16>
// TILES: vector.load %[[Q]][{{.*}}] : memref<2x64x32xbf16>, vector<32xbf16>
// TILES: vector.bitcast {{.*}} : vector<32xbf16> to vector<16xi32>
// TILES: vector.load %[[V]][{{.*}}] : memref<2x128x16xbf16>, vector<16xbf16>
// TILES: vector.store {{.*}}, %[[TURNED]][{{.*}}] : memref<16x128xbf16>, vector<32xbf16>
// TILES: llvm.call_intrinsic "llvm.x86.ldtilecfg"
// TILES: memref.extract_aligned_pointer_as_index %[[K]]
// TILES: llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// TILES: math.exp {{.*}} : vector<16xf32>
// TILES: llvm.call_intrinsic "llvm.x86.avx512bf16.cvtne2ps2bf16.512"
// TILES: vector.store {{.*}}, %[[PROBABILITIES]][{{.*}}] : memref<64x32xi32>, vector<16xi32>
// TILES: llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// TILES: llvm.call_intrinsic "llvm.x86.tilerelease"
// TILES: vector.shuffle {{.*}} : vector<16xf32>, vector<16xf32>
// F32-NOT: llvm.x86
// F32: vector.fma
func.func @bf16(%q: tensor<2x64x32xbf16>, %k: tensor<2x128x32xbf16>, %v: tensor<2x128x16xbf16>) -> tensor<2x64x16xbf16> attributes {lamina.kind = "attention"} {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x64x32xbf16>, tensor<2x128x32xbf16>) -> tensor<2x64x128xf32>
  %m = stablehlo.reduce(%s init: %least) applies stablehlo.maximum across dimensions = [2] : (tensor<2x64x128xf32>, tensor<f32>) -> tensor<2x64xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<2x64xf32>) -> tensor<2x64x128xf32>
  %d = stablehlo.subtract %s, %mb : tensor<2x64x128xf32>
  %e = stablehlo.exponential %d : tensor<2x64x128xf32>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x64x128xf32>, tensor<f32>) -> tensor<2x64xf32>
  %lb = stablehlo.broadcast_in_dim %l, dims = [0, 1] : (tensor<2x64xf32>) -> tensor<2x64x128xf32>
  %p = stablehlo.divide %e, %lb : tensor<2x64x128xf32>
  %r = stablehlo.convert %p : (tensor<2x64x128xf32>) -> tensor<2x64x128xbf16>
  %o = stablehlo.dot_general %r, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x64x128xbf16>, tensor<2x128x16xbf16>) -> tensor<2x64x16xbf16>
  return %o : tensor<2x64x16xbf16>
}

// Probabilities that the program does not round are multiplied as they are.
// CHECK-LABEL: func.func @unrounded
// CHECK-NOT: llvm.x86
// CHECK: vector.fma
// CHECK-NOT: llvm.x86
func.func @unrounded(%q: tensor<2x64x32xbf16>, %k: tensor<2x128x32xbf16>, %v: tensor<2x128x16xbf16>) -> tensor<2x64x16xbf16> attributes {lamina.kind = "attention"} {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x64x32xbf16>, tensor<2x128x32xbf16>) -> tensor<2x64x128xf32>
  %m = stablehlo.reduce(%s init: %least) applies stablehlo.maximum across dimensions = [2] : (tensor<2x64x128xf32>, tensor<f32>) -> tensor<2x64xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<2x64xf32>) -> tensor<2x64x128xf32>
  %d = stablehlo.subtract %s, %mb : tensor<2x64x128xf32>
  %e = stablehlo.exponential %d : tensor<2x64x128xf32>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x64x128xf32>, tensor<f32>) -> tensor<2x64xf32>
  %lb = stablehlo.broadcast_in_dim %l, dims = [0, 1] : (tensor<2x64xf32>) -> tensor<2x64x128xf32>
  %p = stablehlo.divide %e, %lb : tensor<2x64x128xf32>
  %o = stablehlo.dot_general %p, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x64x128xf32>, tensor<2x128x16xbf16>) -> tensor<2x64x16xbf16>
  return %o : tensor<2x64x16xbf16>
}

// CHECK-LABEL: func.func @other
// CHECK: stablehlo.add
func.func @other(%x: tensor<4xf32>) -> tensor<4xf32> attributes {lamina.kind = "loop"} {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
