// RUN: %lamina-opt %s --pass-pipeline=linalg-lower-to-loops,canonicalize | FileCheck %s

#full = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>

// The fill becomes the accumulator's first value; the store follows the inner loop.
// CHECK-LABEL: func.func @sum_in_a_register
// CHECK-SAME: (%[[X:.*]]: memref<4x8xf32>, %[[Y:.*]]: memref<4xf32>)
// CHECK: scf.for %[[I:.*]] =
// CHECK-NEXT: %[[S:.*]] = scf.for %[[J:.*]] = {{.*}} iter_args(%[[ACC:.*]] = %cst)
// CHECK-NEXT: %[[E:.*]] = memref.load %[[X]][%[[I]], %[[J]]]
// CHECK-NEXT: %[[NEXT:.*]] = arith.addf %[[ACC]], %[[E]]
// CHECK-NEXT: scf.yield %[[NEXT]]
// CHECK: memref.store %[[S]], %[[Y]][%[[I]]]
func.func @sum_in_a_register(%x: memref<4x8xf32>, %y: memref<4xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [affine_map<(i) -> ()>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%zero : f32) outs(%y : memref<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]} ins(%x : memref<4x8xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  }
  return
}

// Blocks of columns as tasks: each block is initialised, then accumulated row by row.
// CHECK-LABEL: func.func @blocks_of_columns
// CHECK: scf.forall (%[[B:.*]]) = (0) to (100) step (32)
// CHECK: %[[END:.*]] = arith.minsi
// CHECK: scf.for %[[J0:.*]] = %[[B]] to %[[END]]
// CHECK-NEXT: memref.store %cst
// CHECK: scf.for %[[I:.*]] =
// CHECK-NEXT: scf.for %[[J:.*]] = %[[B]] to %[[END]]
// CHECK: lamina.grain = 2 : i64
func.func @blocks_of_columns(%x: memref<8x100xf32>, %y: memref<100xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [affine_map<(i) -> ()>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%zero : f32) outs(%y : memref<100xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  linalg.generic {indexing_maps = [#full, #column], iterator_types = ["reduction", "parallel"]} ins(%x : memref<8x100xf32>) outs(%y : memref<100xf32>) attrs = {lamina.loops = array<i64: 1, 32, 0, 1, 1, 1>, lamina.tasks = array<i64: 1, 2>} {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  }
  return
}

// CHECK-LABEL: func.func @position
// CHECK: scf.for %[[I:.*]] =
// CHECK: scf.for %[[J:.*]] =
// CHECK: arith.addi %[[I]], %[[J]]
func.func @position(%y: memref<3x5xindex>) {
  linalg.generic {indexing_maps = [#full], iterator_types = ["parallel", "parallel"]} outs(%y : memref<3x5xindex>) {
  ^bb0(%out: index):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %0 = arith.addi %i, %j : index
    linalg.yield %0 : index
  }
  return
}

// CHECK-LABEL: func.func @on_tensors
// CHECK: linalg.generic
func.func @on_tensors(%x: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %0 = linalg.generic {indexing_maps = [#full], iterator_types = ["parallel", "parallel"]} outs(%x : tensor<3x5xf32>) {
  ^bb0(%out: f32):
    %1 = arith.addf %out, %out : f32
    linalg.yield %1 : f32
  } -> tensor<3x5xf32>
  return %0 : tensor<3x5xf32>
}

// Inside blocks of both dimensions a transposing copy turns tiles in registers; the last ones end where
// the array does.
// CHECK-LABEL: func.func @transposed
// CHECK-DAG: %[[ROW:.*]] = arith.constant 66
// CHECK-DAG: %[[COLUMN:.*]] = arith.constant 84
// CHECK: arith.minsi %{{.*}}, %[[COLUMN]]
// CHECK: arith.minsi %{{.*}}, %[[ROW]]
// CHECK-COUNT-16: vector.load %arg0{{.*}} vector<4xf32>
// CHECK-COUNT-20: vector.shuffle
// CHECK-COUNT-4: vector.store
// CHECK-NOT: memref.load
func.func @transposed(%x: memref<100x70xf32>, %y: memref<70x100xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, #full], iterator_types = ["parallel", "parallel"]} ins(%x : memref<100x70xf32>) outs(%y : memref<70x100xf32>) attrs = {lamina.loops = array<i64: 0, 64, 1, 64, 0, 1, 1, 1>} {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}

// Lines of a large result go past the caches, unless it begins within one.
// CHECK-LABEL: func.func @large
// CHECK: %[[ADDRESS:.*]] = memref.extract_aligned_pointer_as_index %arg1
// CHECK: arith.andi %[[ADDRESS]]
// CHECK: scf.if
// CHECK-COUNT-16: vector.store %{{.*}} {alignment = 64 : i64, nontemporal = true} : memref<1100x1024xf32>
// CHECK: llvm.fence seq_cst
// CHECK: else
// CHECK-COUNT-4: vector.store %{{[^{]*}} : memref<1100x1024xf32>
// CHECK-NOT: llvm.fence
func.func @large(%x: memref<1024x1100xf32>, %y: memref<1100x1024xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, #full], iterator_types = ["parallel", "parallel"]} ins(%x : memref<1024x1100xf32>) outs(%y : memref<1100x1024xf32>) attrs = {lamina.loops = array<i64: 1, 32, 0, 512, 0, 1, 1, 1>} {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}

// What has an element for each step of a reduction is written beside it.
// CHECK-LABEL: func.func @beside
// CHECK: scf.for
// CHECK: scf.for
// CHECK: memref.store %{{.*}}, %arg1
// CHECK: memref.store %{{.*}}, %arg2
func.func @beside(%x: memref<3x4xf32>, %e: memref<3x4xf32>, %s: memref<3xf32>) {
  %z = arith.constant 0.0 : f32
  linalg.fill ins(%z : f32) outs(%s : memref<3xf32>)
  linalg.generic {indexing_maps = [#full, #full, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x : memref<3x4xf32>) outs(%e, %s : memref<3x4xf32>, memref<3xf32>) attrs = {lamina.loops = array<i64: 0, 1, 1, 1>} {
  ^bb0(%in: f32, %out: f32, %sum: f32):
    %0 = math.exp %in : f32
    %1 = arith.addf %sum, %0 : f32
    linalg.yield %0, %1 : f32, f32
  }
  return
}

// Arithmetic on the way is done on vectors.
// CHECK-LABEL: func.func @turned_and_converted
// CHECK-COUNT-16: vector.load %arg0
// CHECK-COUNT-20: vector.shuffle
// CHECK: arith.addf %{{.*}} : vector<16xf32>
// CHECK: arith.truncf %{{.*}} : vector<16xf32> to vector<16xf16>
// CHECK: vector.store %{{.*}}, %arg1{{.*}} : memref<70x100xf16>, vector<16xf16>
func.func @turned_and_converted(%x: memref<100x70xf32>, %y: memref<70x100xf16>) {
  %c = arith.constant 1.0 : f32
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, #full], iterator_types = ["parallel", "parallel"]} ins(%x : memref<100x70xf32>) outs(%y : memref<70x100xf16>) attrs = {lamina.loops = array<i64: 0, 64, 1, 64, 0, 1, 1, 1>} {
  ^bb0(%in: f32, %out: f16):
    %0 = arith.addf %in, %c : f32
    %1 = arith.truncf %0 : f32 to f16
    linalg.yield %1 : f16
  }
  return
}

// Three rows are dealt into one: of each a vector, which three shuffled twice are.
// CHECK-LABEL: func.func @dealt
// CHECK: arith.minsi
// CHECK-COUNT-3: vector.load %arg0[{{.*}}] : memref<3x1000xf32>, vector<16xf32>
// CHECK-COUNT-6: vector.shuffle
// CHECK-COUNT-3: vector.store {{.*}}, %arg1[{{.*}}] : memref<1000x3xf32>, vector<16xf32>
// CHECK-NOT: memref.load
func.func @dealt(%x: memref<3x1000xf32>, %y: memref<1000x3xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, #full], iterator_types = ["parallel", "parallel"]} ins(%x : memref<3x1000xf32>) outs(%y : memref<1000x3xf32>) attrs = {lamina.loops = array<i64: 0, 4096, 1, 3, 0, 1, 1, 1>} {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}

// As many rows as lanes change places in squares: first of one element, then of two, then of four.
// CHECK-LABEL: func.func @square
// CHECK-COUNT-8: vector.load %arg0[{{.*}}] : memref<8x8xf32>, vector<8xf32>
// CHECK: vector.shuffle {{.*}} [0, 8, 2, 10, 4, 12, 6, 14]
// CHECK: vector.shuffle {{.*}} [1, 9, 3, 11, 5, 13, 7, 15]
// CHECK-COUNT-6: vector.shuffle
// CHECK: vector.shuffle {{.*}} [0, 1, 8, 9, 4, 5, 12, 13]
// CHECK-COUNT-7: vector.shuffle
// CHECK: vector.shuffle {{.*}} [0, 1, 2, 3, 8, 9, 10, 11]
// CHECK-COUNT-7: vector.shuffle
// CHECK-NOT: vector.shuffle
// CHECK-COUNT-8: vector.store {{.*}}, %arg1[{{.*}}] : memref<8x8xf32>, vector<8xf32>
func.func @square(%x: memref<8x8xf32>, %y: memref<8x8xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, #full], iterator_types = ["parallel", "parallel"]} ins(%x : memref<8x8xf32>) outs(%y : memref<8x8xf32>) attrs = {lamina.loops = array<i64: 0, 4096, 1, 8, 0, 1, 1, 1>} {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}

// And back: four rows of bytes from one, in twice two shuffles each.
// CHECK-LABEL: func.func @dealt_out
// CHECK-COUNT-4: vector.load %arg0[{{.*}}] : memref<640x4xi8>, vector<64xi8>
// CHECK-COUNT-8: vector.shuffle
// CHECK-COUNT-4: vector.store {{.*}}, %arg1[{{.*}}] : memref<4x640xi8>, vector<64xi8>
func.func @dealt_out(%x: memref<640x4xi8>, %y: memref<4x640xi8>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, #full], iterator_types = ["parallel", "parallel"]} ins(%x : memref<640x4xi8>) outs(%y : memref<4x640xi8>) attrs = {lamina.loops = array<i64: 1, 4096, 0, 4, 0, 1, 1, 1>} {
  ^bb0(%in: i8, %out: i8):
    linalg.yield %in : i8
  }
  return
}
