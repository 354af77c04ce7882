// RUN: %lamina-opt %s --pass-pipeline=linalg-choose-loops | FileCheck %s

#full = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>

// Too little work for tasks.
// CHECK-LABEL: func.func @small
// CHECK: lamina.loops = array<i64: 0, 1, 1, 1>}
func.func @small(%x: memref<8x8xf32>, %y: memref<8x8xf32>) {
  linalg.generic {indexing_maps = [#full, #full], iterator_types = ["parallel", "parallel"]} ins(%x : memref<8x8xf32>) outs(%y : memref<8x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}

// Rows are tasks; each is summed in registers along contiguous memory.
// CHECK-LABEL: func.func @sum_of_rows
// CHECK: lamina.loops = array<i64: 0, 1, 1, 1>, lamina.tasks = array<i64: 1,
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
// CHECK-LABEL: func.func @sum_of_columns
// CHECK: lamina.loops = array<i64: 1, 64, 0, 1, 1, 1>, lamina.tasks = array<i64: 1,
func.func @sum_of_columns(%x: memref<2048x4096xf32>, %y: memref<4096xf32>) {
  linalg.generic {indexing_maps = [#full, #column], iterator_types = ["reduction", "parallel"]} ins(%x : memref<2048x4096xf32>) outs(%y : memref<4096xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  }
  return
}

// Of rows that don't begin on a cache line, four lines would be five.
// CHECK-LABEL: func.func @sum_of_odd_columns
// CHECK: lamina.loops = array<i64: 1, 512, 0, 1, 1, 1>, lamina.tasks = array<i64: 1,
func.func @sum_of_odd_columns(%x: memref<2048x4097xf32>, %y: memref<4097xf32>) {
  linalg.generic {indexing_maps = [#full, #column], iterator_types = ["reduction", "parallel"]} ins(%x : memref<2048x4097xf32>) outs(%y : memref<4097xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  }
  return
}

// A transposing copy gets square blocks; a large one that writes whole lines, blocks of few rows read.
// CHECK-LABEL: func.func @transposed
// CHECK: lamina.loops = array<i64: 0, 64, 1, 64, 0, 1, 1, 1>
// CHECK: lamina.loops = array<i64: 1, 32, 0, 512, 0, 1, 1, 1>
func.func @transposed(%x: memref<512x1024xf32>, %y: memref<1024x512xf32>, %u: memref<2048x1024xf32>, %v: memref<1024x2048xf32>) {
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
// CHECK-LABEL: func.func @dealt
// CHECK: lamina.loops = array<i64: 0, 4096, 1, 3, 0, 1, 1, 1>
func.func @dealt(%x: memref<3x1000xf32>, %y: memref<1000x3xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, #full], iterator_types = ["parallel", "parallel"]} ins(%x : memref<3x1000xf32>) outs(%y : memref<1000x3xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}

// Few long rows are tasks in blocks, short ones as they are however much an element is.
// CHECK-LABEL: func.func @few_rows
// CHECK: lamina.loops = array<i64: 0, 1, 1, 4096, 1, 1>, lamina.tasks = array<i64: 2,
// CHECK: lamina.loops = array<i64: 0, 1, 1, 1>, lamina.tasks = array<i64: 1,
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

// A chosen nest stays.
// CHECK-LABEL: func.func @chosen
// CHECK: lamina.loops = array<i64: 1, 1, 0, 1>}
func.func @chosen(%x: memref<8x8xf32>, %y: memref<8x8xf32>) {
  linalg.generic {indexing_maps = [#full, #full], iterator_types = ["parallel", "parallel"]} ins(%x : memref<8x8xf32>) outs(%y : memref<8x8xf32>) attrs = {lamina.loops = array<i64: 1, 1, 0, 1>} {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}

// Inside a loop there is no parallel work.
// CHECK-LABEL: func.func @inner
// CHECK-NOT: lamina.tasks
func.func @inner(%x: memref<2048x2048xf32>, %y: memref<2048x2048xf32>, %n: index) {
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
