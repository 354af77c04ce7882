// RUN: %lamina-opt %s --pass-pipeline=schedule-generics,canonicalize | FileCheck %s
// RUN: %lamina-opt %s --pass-pipeline="schedule-generics{explain=true}" | FileCheck %s --check-prefix=CHOSEN

#full = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
#flipped = affine_map<(i, j) -> (j, i)>

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
func.func @blocks_of_columns(%x: memref<8x100xf32>, %y: memref<100xf32>) attributes {lamina.schedule = "s0: j:32 i j; parallel s0 1 grain 2"} {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [affine_map<(i) -> ()>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%zero : f32) outs(%y : memref<100xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  linalg.generic {indexing_maps = [#full, #column], iterator_types = ["reduction", "parallel"]} ins(%x : memref<8x100xf32>) outs(%y : memref<100xf32>) {
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
func.func @transposed(%x: memref<100x70xf32>, %y: memref<70x100xf32>) attributes {lamina.schedule = "s0: i:64 j:64 i j; tile s0"} {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, #full], iterator_types = ["parallel", "parallel"]} ins(%x : memref<100x70xf32>) outs(%y : memref<70x100xf32>) {
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
func.func @large(%x: memref<1024x1100xf32>, %y: memref<1100x1024xf32>) attributes {lamina.schedule = "s0: j:32 i:512 i j; tile s0"} {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, #full], iterator_types = ["parallel", "parallel"]} ins(%x : memref<1024x1100xf32>) outs(%y : memref<1100x1024xf32>) {
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
func.func @beside(%x: memref<3x4xf32>, %e: memref<3x4xf32>, %s: memref<3xf32>) attributes {lamina.schedule = "s0: i j"} {
  %z = arith.constant 0.0 : f32
  linalg.fill ins(%z : f32) outs(%s : memref<3xf32>)
  linalg.generic {indexing_maps = [#full, #full, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x : memref<3x4xf32>) outs(%e, %s : memref<3x4xf32>, memref<3xf32>) {
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
func.func @turned_and_converted(%x: memref<100x70xf32>, %y: memref<70x100xf16>) attributes {lamina.schedule = "s0: i:64 j:64 i j; tile s0"} {
  %c = arith.constant 1.0 : f32
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, #full], iterator_types = ["parallel", "parallel"]} ins(%x : memref<100x70xf32>) outs(%y : memref<70x100xf16>) {
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
func.func @dealt(%x: memref<3x1000xf32>, %y: memref<1000x3xf32>) attributes {lamina.schedule = "s0: i:4096 j:3 i j; tile s0"} {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, #full], iterator_types = ["parallel", "parallel"]} ins(%x : memref<3x1000xf32>) outs(%y : memref<1000x3xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}

// A square is transposed within lanes of 128 bits, four rows at a time, and then the lanes are; LLVM does not look
// through both.
// CHECK-LABEL: func.func @square
// CHECK-COUNT-8: vector.load %arg0[{{.*}}] : memref<8x8xf32>, vector<8xf32>
// CHECK-COUNT-2: vector.shuffle {{.*}} [0, 8, 1, 9, 4, 12, 5, 13]
// CHECK: vector.shuffle {{.*}} [0, 1, 8, 9, 4, 5, 12, 13]
// CHECK: vector.shuffle {{.*}} [2, 3, 10, 11, 6, 7, 14, 15]
// CHECK-COUNT-2: vector.shuffle {{.*}} [2, 10, 3, 11, 6, 14, 7, 15]
// CHECK-COUNT-8: llvm.call_intrinsic "llvm.arithmetic.fence"
// CHECK: vector.shuffle {{.*}} [0, 1, 2, 3, 8, 9, 10, 11]
// CHECK: vector.shuffle {{.*}} [4, 5, 6, 7, 12, 13, 14, 15]
// CHECK-COUNT-6: vector.shuffle
// CHECK-NOT: vector.shuffle
// CHECK-COUNT-8: vector.store {{.*}}, %arg1[{{.*}}] : memref<8x8xf32>, vector<8xf32>
func.func @square(%x: memref<8x8xf32>, %y: memref<8x8xf32>) attributes {lamina.schedule = "s0: i:4096 j:8 i j; tile s0"} {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, #full], iterator_types = ["parallel", "parallel"]} ins(%x : memref<8x8xf32>) outs(%y : memref<8x8xf32>) {
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
func.func @dealt_out(%x: memref<640x4xi8>, %y: memref<4x640xi8>) attributes {lamina.schedule = "s0: j:4096 i:4 i j; tile s0"} {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, #full], iterator_types = ["parallel", "parallel"]} ins(%x : memref<640x4xi8>) outs(%y : memref<4x640xi8>) {
  ^bb0(%in: i8, %out: i8):
    linalg.yield %in : i8
  }
  return
}

// What is chosen, where nothing is said.
func.func private @look(memref<8xf32>)

// Too little work for tasks.
// CHOSEN-LABEL: func.func @small(
// CHOSEN-SAME: lamina.schedule = "s0: i j"
func.func @small(%x: memref<8x8xf32>, %y: memref<8x8xf32>) {
  linalg.generic {indexing_maps = [#full, #full], iterator_types = ["parallel", "parallel"]} ins(%x : memref<8x8xf32>) outs(%y : memref<8x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}

// Rows are tasks; each is summed in registers along contiguous memory.
// CHOSEN-LABEL: func.func @sum_of_rows(
// CHOSEN-SAME: lamina.schedule = "s0: i j; parallel s0 1 grain 19"
func.func @sum_of_rows(%x: memref<2048x2048xf32>, %y: memref<2048xf32>) {
  linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]} ins(%x : memref<2048x2048xf32>) outs(%y : memref<2048xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  }
  return
}

// Blocks of columns are tasks; the reduction goes outside the contiguous dimension. Plain sums of large
// arrays grow in registers.
// CHOSEN-LABEL: func.func @sum_of_columns(
// CHOSEN-SAME: lamina.schedule = "s0: j:1024 i:8 j i*; parallel s0 1 grain 1"
func.func @sum_of_columns(%x: memref<2048x4096xf32>, %y: memref<4096xf32>) {
  linalg.generic {indexing_maps = [#full, #column], iterator_types = ["reduction", "parallel"]} ins(%x : memref<2048x4096xf32>) outs(%y : memref<4096xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  }
  return
}

// Of rows that don't begin on a cache line, four lines would be five.
// CHOSEN-LABEL: func.func @sum_of_odd_columns(
// CHOSEN-SAME: lamina.schedule = "s0: j:512 i j; parallel s0 1 grain 1"
func.func @sum_of_odd_columns(%x: memref<2048x4097xf32>, %y: memref<4097xf32>) {
  linalg.generic {indexing_maps = [#full, #column], iterator_types = ["reduction", "parallel"]} ins(%x : memref<2048x4097xf32>) outs(%y : memref<4097xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  }
  return
}

// A transposing copy gets square blocks; a large one that writes whole lines, blocks of few rows read.
// CHOSEN-LABEL: func.func @transposed_in_blocks(
// CHOSEN-SAME: lamina.schedule = "s0: i:64 j:64 i j; s1: j:32 i:512 i j; tile s0; tile s1; parallel s0 1 grain 2; parallel s1 1 grain 2"
func.func @transposed_in_blocks(%x: memref<512x1024xf32>, %y: memref<1024x512xf32>, %u: memref<2048x1024xf32>, %v: memref<1024x2048xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, #full], iterator_types = ["parallel", "parallel"]} ins(%x : memref<512x1024xf32>) outs(%y : memref<1024x512xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, #full], iterator_types = ["parallel", "parallel"]} ins(%u : memref<2048x1024xf32>) outs(%v : memref<1024x2048xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}

// Few rows are dealt: blocks of them whole.
// CHOSEN-LABEL: func.func @dealt_whole(
// CHOSEN-SAME: lamina.schedule = "s0: i:4096 j:3 i j; tile s0"
func.func @dealt_whole(%x: memref<3x1000xf32>, %y: memref<1000x3xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, #full], iterator_types = ["parallel", "parallel"]} ins(%x : memref<3x1000xf32>) outs(%y : memref<1000x3xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}

// Few long rows are tasks in blocks, short ones as they are however much an element is.
// CHOSEN-LABEL: func.func @few_rows(
// CHOSEN-SAME: lamina.schedule = "s0: i j:4096 j; s1: i j; parallel s0 2 grain 3; parallel s1 1 grain 1"
func.func @few_rows(%x: memref<4x100000xf32>, %r: memref<100000xf32>, %y: memref<4x100000xf32>, %a: memref<64x1024xf32>, %s: memref<1024xf32>, %b: memref<64x1024xf32>) {
  linalg.generic {indexing_maps = [#full, #column, #full], iterator_types = ["parallel", "parallel"]} ins(%x, %r : memref<4x100000xf32>, memref<100000xf32>) outs(%y : memref<4x100000xf32>) {
  ^bb0(%in: f32, %row: f32, %out: f32):
    %0 = math.exp %in : f32
    %1 = arith.mulf %0, %row : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [#full, #column, #full], iterator_types = ["parallel", "parallel"]} ins(%a, %s : memref<64x1024xf32>, memref<1024xf32>) outs(%b : memref<64x1024xf32>) {
  ^bb0(%in: f32, %row: f32, %out: f32):
    %0 = math.exp %in : f32
    %1 = math.exp %0 : f32
    %2 = math.exp %1 : f32
    %3 = math.exp %2 : f32
    %4 = math.exp %3 : f32
    %5 = math.exp %4 : f32
    %6 = math.exp %5 : f32
    %7 = math.exp %6 : f32
    %8 = math.exp %7 : f32
    %9 = math.exp %8 : f32
    %10 = math.exp %9 : f32
    %11 = math.exp %10 : f32
    %12 = math.exp %11 : f32
    %13 = math.exp %12 : f32
    %14 = math.exp %13 : f32
    %15 = math.exp %14 : f32
    %16 = arith.mulf %15, %row : f32
    linalg.yield %16 : f32
  }
  return
}

// Inside a loop there is no parallel work.
// CHOSEN-LABEL: func.func @inside_a_loop(
func.func @inside_a_loop(%x: memref<2048x2048xf32>, %y: memref<2048x2048xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %k = %c0 to %n step %c1 {
    linalg.generic {indexing_maps = [#full, #full], iterator_types = ["parallel", "parallel"]} ins(%x : memref<2048x2048xf32>) outs(%y : memref<2048x2048xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    }
  }
  return
}

// A row is squared, summed and divided before the next one: one loop over rows, and a temporary of one row.
// CHOSEN-LABEL: func.func @fused_rows(
// CHOSEN-SAME: lamina.schedule = "s0: i j; s1: i j; s2: i j; share s0 s1 at 1; share s1 s2 at 1"
func.func @fused_rows(%x: memref<8x16xf32>, %z: memref<8x16xf32>) {
  %y = memref.alloc() : memref<8x16xf32>
  %s = memref.alloc() : memref<8xf32>
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [#full, #full], iterator_types = ["parallel", "parallel"]} ins(%x : memref<8x16xf32>) outs(%y : memref<8x16xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %in : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i) -> ()>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%zero : f32) outs(%s : memref<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]} ins(%y : memref<8x16xf32>) outs(%s : memref<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#full, #row, #full], iterator_types = ["parallel", "parallel"]} ins(%y, %s : memref<8x16xf32>, memref<8xf32>) outs(%z : memref<8x16xf32>) {
  ^bb0(%in: f32, %sum: f32, %out: f32):
    %0 = arith.divf %in, %sum : f32
    linalg.yield %0 : f32
  }
  return
}

// Equal shapes share every loop.
// CHOSEN-LABEL: func.func @two_results(
// CHOSEN-SAME: lamina.schedule = "s0: i j; s1: i j; share s0 s1 at 2"
func.func @two_results(%x: memref<8x16xf32>, %y: memref<8x16xf32>, %z: memref<8x16xf32>) {
  linalg.generic {indexing_maps = [#full, #full], iterator_types = ["parallel", "parallel"]} ins(%x : memref<8x16xf32>) outs(%y : memref<8x16xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %in : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#full, #full], iterator_types = ["parallel", "parallel"]} ins(%y : memref<8x16xf32>) outs(%z : memref<8x16xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %in, %in : f32
    linalg.yield %0 : f32
  }
  return
}

// The second loads what the first writes, wherever it likes.
// CHOSEN-LABEL: func.func @gathered(
// CHOSEN-SAME: lamina.schedule = "s0: i; s1: i"
func.func @gathered(%x: memref<8xf32>, %y: memref<8xf32>, %i: memref<8xindex>, %z: memref<8xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : memref<8xf32>) outs(%y : memref<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%i : memref<8xindex>) outs(%z : memref<8xf32>) {
  ^bb0(%in: index, %out: f32):
    %0 = memref.load %y[%in] : memref<8xf32>
    linalg.yield %0 : f32
  }
  return
}

// Something in between may look at memory.
// CHOSEN-LABEL: func.func @interrupted(
// CHOSEN-SAME: lamina.schedule = "s0: i; s1: i"
func.func @interrupted(%x: memref<8xf32>, %y: memref<8xf32>, %z: memref<8xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : memref<8xf32>) outs(%y : memref<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  func.call @look(%y) : (memref<8xf32>) -> ()
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%y : memref<8xf32>) outs(%z : memref<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}

// Blocks of columns: what is summed down them is then divided block by block.
// CHOSEN-LABEL: func.func @fused_columns(
// CHOSEN-SAME: lamina.schedule = "s0: i:64 j i; s1: j:64 i j; share s0 s1 at 1; parallel s0 1 grain 1"
func.func @fused_columns(%x: memref<512x1024xf32>, %s: memref<1024xf32>, %y: memref<512x1024xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x : memref<512x1024xf32>) outs(%s : memref<1024xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x, %s : memref<512x1024xf32>, memref<1024xf32>) outs(%y : memref<512x1024xf32>) {
  ^bb0(%in: f32, %sum: f32, %out: f32):
    %0 = arith.divf %in, %sum : f32
    linalg.yield %0 : f32
  }
  return
}

// In a part of a larger op, too, and serially: that is a task already.
// CHOSEN-LABEL: func.func @part(
func.func @part(%x: memref<64x4096xf32>, %y: memref<64xf32>) {
  scf.forall (%t) = (0) to (1) step (1) {
    %s = memref.alloc() : memref<64xf32>
    linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x : memref<64x4096xf32>) outs(%s : memref<64xf32>) attrs = {lamina.part} {
    ^bb0(%a: f32, %b: f32):
      %0 = arith.addf %a, %b : f32
      linalg.yield %0 : f32
    }
    linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%s : memref<64xf32>) outs(%y : memref<64xf32>) {
    ^bb0(%a: f32, %b: f32):
      %0 = arith.mulf %a, %a : f32
      linalg.yield %0 : f32
    }
  }
  return
}

// Eight views of the rows; what is the same for all rows is read once. Blocks are pages of long rows.
// CHOSEN-LABEL: func.func @jammed(
// CHOSEN-SAME: lamina.schedule = "s0: j:1024 i:8 j i*; parallel s0 1 grain 1"
func.func @jammed(%x: memref<2048x4096xf32>, %s: memref<4096xf32>, %y: memref<4096xf32>) {
  linalg.generic {indexing_maps = [#full, #column, #column], iterator_types = ["reduction", "parallel"]} ins(%x, %s : memref<2048x4096xf32>, memref<4096xf32>) outs(%y : memref<4096xf32>) {
  ^bb0(%in: f32, %scale: f32, %out: f32):
    %0 = arith.mulf %in, %scale : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// Half pages of shorter rows, so that there are tasks enough.
// CHOSEN-LABEL: func.func @jammed_half_pages(
// CHOSEN-SAME: lamina.schedule = "s0: j:256 i:8 j i*; parallel s0 1 grain 1"
func.func @jammed_half_pages(%x: memref<2048x1024xf64>, %y: memref<1024xf64>) {
  linalg.generic {indexing_maps = [#full, #column], iterator_types = ["reduction", "parallel"]} ins(%x : memref<2048x1024xf64>) outs(%y : memref<1024xf64>) {
  ^bb0(%in: f64, %out: f64):
    %0 = arith.maximumf %out, %in : f64
    linalg.yield %0 : f64
  }
  return
}

// A factor of each row is a view, too; ten rows where there are no multiples of eight.
// CHOSEN-LABEL: func.func @jammed_product(
// CHOSEN-SAME: lamina.schedule = "s0: i:256 j:10 i j*; parallel s0 1 grain 1"
func.func @jammed_product(%x: memref<2100xf64>, %a: memref<2100x2000xf64>, %y: memref<2000xf64>) {
  linalg.generic {indexing_maps = [affine_map<(j, i) -> (i)>, affine_map<(j, i) -> (i, j)>, affine_map<(j, i) -> (j)>], iterator_types = ["parallel", "reduction"]} ins(%x, %a : memref<2100xf64>, memref<2100x2000xf64>) outs(%y : memref<2000xf64>) {
  ^bb0(%factor: f64, %in: f64, %out: f64):
    %0 = arith.mulf %factor, %in : f64
    %1 = arith.addf %out, %0 : f64
    linalg.yield %1 : f64
  }
  return
}

// Left alone: other numbers of rows, short rows, sums along rows.
// CHOSEN-LABEL: func.func @not_jammed(
// CHOSEN-SAME: lamina.schedule = "s0: j:64 i j; s1: j:64 i j; s2: i j; parallel s0 1 grain 1; parallel s1 1 grain 1; parallel s2 1 grain 76"
func.func @not_jammed(%x: memref<2062x4096xf32>, %y: memref<4096xf32>, %u: memref<8192x512xf32>, %v: memref<512xf32>, %w: memref<8192xf32>) {
  linalg.generic {indexing_maps = [#full, #column], iterator_types = ["reduction", "parallel"]} ins(%x : memref<2062x4096xf32>) outs(%y : memref<4096xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#full, #column], iterator_types = ["reduction", "parallel"]} ins(%u : memref<8192x512xf32>) outs(%v : memref<512xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#full, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%u : memref<8192x512xf32>) outs(%w : memref<8192xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  }
  return
}

// A sum is added up while its terms are made, which need no memory then.
// CHECK-LABEL: func.func @summed_while_made
// CHECK-NOT: memref.alloc
// CHECK: scf.for %[[I:.*]] =
// CHECK: %[[S:.*]] = scf.for %[[J:.*]] = {{.*}} iter_args(%[[ACC:.*]] = %{{.*}})
// CHECK-NEXT: %[[X:.*]] = memref.load %arg0[%[[I]], %[[J]]]
// CHECK-NEXT: %[[P:.*]] = arith.mulf %[[X]], %[[X]]
// CHECK-NEXT: %[[N:.*]] = arith.addf %[[ACC]], %[[P]]
// CHECK-NEXT: scf.yield %[[N]]
// CHECK: memref.store %[[S]], %arg1[%[[I]]]
// CHOSEN-LABEL: func.func @summed_while_made(
// CHOSEN-SAME: lamina.schedule = "s0: i j; s1: i j; share s0 s1 at 2"
func.func @summed_while_made(%x: memref<8x64xf32>, %s: memref<8xf32>) {
  %y = memref.alloc() : memref<8x64xf32>
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [#full, #full], iterator_types = ["parallel", "parallel"]} ins(%x : memref<8x64xf32>) outs(%y : memref<8x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %in : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i) -> ()>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%zero : f32) outs(%s : memref<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]} ins(%y : memref<8x64xf32>) outs(%s : memref<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  return
}

// Eight rows at a time: each sum of a column is read once for them, and written once.
// CHECK-LABEL: func.func @eight_rows
// CHECK: scf.forall
// CHECK: scf.for %[[I:.*]] = {{.*}} step %c8
// CHECK: scf.for %[[J:.*]] =
// CHECK: memref.load %arg1
// CHECK-COUNT-8: memref.load %arg0
// CHECK-NOT: memref.load
// CHECK: memref.store %{{.*}}, %arg1
func.func @eight_rows(%x: memref<2048x4096xf32>, %y: memref<4096xf32>) attributes {lamina.schedule = "s0: j:1024 i:8 j i*; parallel s0 1 grain 1"} {
  linalg.generic {indexing_maps = [#full, #column], iterator_types = ["reduction", "parallel"]} ins(%x : memref<2048x4096xf32>) outs(%y : memref<4096xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  }
  return
}

// Inside a loop, too, a fill becomes the accumulator's first value; statements share nothing there.
// CHECK-LABEL: func.func @sum_inside_a_loop
// CHECK: scf.for
// CHECK: scf.for
// CHECK-NEXT: %[[S:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %cst)
// CHECK-NOT: memref.store %cst
func.func @sum_inside_a_loop(%x: memref<4x8xf32>, %y: memref<4xf32>, %n: index) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %k = %c0 to %n step %c1 {
    linalg.generic {indexing_maps = [affine_map<(i) -> ()>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%zero : f32) outs(%y : memref<4xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    }
    linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]} ins(%x : memref<4x8xf32>) outs(%y : memref<4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %0 = arith.addf %out, %in : f32
      linalg.yield %0 : f32
    }
  }
  return
}

// A loop too short for vectors is unrolled: the one around it is innermost.
// CHECK-LABEL: func.func @points
// CHECK: scf.for
// CHECK-NEXT: scf.for %[[J:.*]] =
// CHECK-COUNT-3: arith.mulf
// CHECK: memref.store
// CHOSEN: func.func @points
// CHOSEN-SAME: lamina.schedule = "s0: i j k*"
func.func @points(%x: memref<10x3xf32>, %c: memref<8x3xf32>, %y: memref<10x8xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [affine_map<(i, j) -> ()>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%zero : f32) outs(%y : memref<10x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %c : memref<10x3xf32>, memref<8x3xf32>) outs(%y : memref<10x8xf32>) {
  ^bb0(%in: f32, %other: f32, %out: f32):
    %0 = arith.subf %in, %other : f32
    %1 = arith.mulf %0, %0 : f32
    %2 = arith.addf %out, %1 fastmath<reassoc> : f32
    linalg.yield %2 : f32
  }
  return
}
