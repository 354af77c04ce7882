// RUN: %lamina-opt %s --gpu-map-to-threads --split-input-file | FileCheck %s

// Rows that share a kernel: the temporary is one row of shared memory. Threads read what they wrote
// themselves; there is a barrier where a warp reads what others have.
// CHECK: gpu.module @rows_gpu attributes {lamina.scratch_bytes = 0 : i64}
// CHECK-DAG: memref.global "private" @{{.*}} : memref<1000xf32, 3> = uninitialized
// CHECK-DAG: memref.global "private" @{{.*}} : memref<8xf32, 3> = uninitialized
// CHECK: gpu.func @rows_0
// CHECK-SAME: known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 64, 1, 1>
// CHECK: vector.load {{.*}} {alignment = 16 : i64} : memref<64x1000xf32>, vector<4xf32>
// CHECK: vector.store {{.*}} : memref<1000xf32, 3>, vector<4xf32>
// CHECK-NOT: gpu.barrier
// CHECK: vector.load {{.*}} : memref<1000xf32, 3>, vector<4xf32>
// CHECK: gpu.shuffle xor
// CHECK: gpu.barrier
// CHECK: memref.store {{.*}} : memref<64xf32>
// CHECK-NOT: gpu.func @rows_1
func.func @rows(%x: memref<64x1000xf32>, %sums: memref<64xf32>) {
  %t = memref.alloc() : memref<64x1000xf32>
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                  iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<64x1000xf32>) outs(%t : memref<64x1000xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = math.exp %in : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                  iterator_types = ["parallel", "reduction"]}
      ins(%t : memref<64x1000xf32>) outs(%sums : memref<64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// CHECK: gpu.func @columns_0
// CHECK-SAME: known_block_size = array<i32: 32, 8, 1>, known_grid_size = array<i32: 2, 1, 1>
// CHECK: memref.get_global {{.*}} : memref<8x32xf32, 3>
// CHECK: gpu.barrier
func.func @columns(%x: memref<100x50xf32>, %sums: memref<50xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i)>],
                  iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<100x50xf32>) outs(%sums : memref<50xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// CHECK: gpu.func @transpose_0
// CHECK-SAME: known_block_size = array<i32: 32, 8, 1>, known_grid_size = array<i32: 8, 1, 1>
// CHECK: memref.get_global {{.*}} : memref<32x33xf32, 3>
// CHECK: memref.load %arg0
// CHECK: gpu.barrier
// CHECK: memref.store {{.*}}, %arg1
func.func @transpose(%x: memref<100x50xf32>, %y: memref<50x100xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>],
                  iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<100x50xf32>) outs(%y : memref<50x100xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}

// -----

// Over the same elements: one kernel, whose temporary stays in registers. 16 bytes are 8 halves.
// CHECK: gpu.module @loop_gpu attributes {lamina.scratch_bytes = 0 : i64}
// CHECK: gpu.func @loop_0
// CHECK: vector.load {{.*}} vector<8xf16>
// CHECK-NOT: gpu.func @loop_1
// CHECK-NOT: memref.view
// CHECK: vector.store {{.*}} vector<8xf16>
func.func @loop(%x: memref<64xf16>, %y: memref<64xf16>) {
  %t = memref.alloc() : memref<64xf16>
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
                  iterator_types = ["parallel"]}
      ins(%x : memref<64xf16>) outs(%t : memref<64xf16>) {
  ^bb0(%in: f16, %out: f16):
    %0 = arith.negf %in : f16
    linalg.yield %0 : f16
  }
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
                  iterator_types = ["parallel"]}
      ins(%t : memref<64xf16>) outs(%y : memref<64xf16>) {
  ^bb0(%in: f16, %out: f16):
    %0 = arith.addf %in, %in : f16
    linalg.yield %0 : f16
  }
  return
}

// -----

// One kernel after the other where elements meet others, with the temporary in scratch memory.
// CHECK: gpu.module @turned_gpu attributes {lamina.scratch_bytes = 256 : i64}
// CHECK: gpu.func @turned_0
// CHECK-SAME: %[[SCRATCH:[a-z0-9]+]]: memref<256xi8>
// CHECK: memref.view %[[SCRATCH]]
// CHECK: vector.store {{.*}} vector<8xf16>
// CHECK-NOT: gpu.barrier
// CHECK: gpu.func @turned_1
func.func @turned(%x: memref<64xf16>, %y: memref<64xf16>) {
  %t = memref.alloc() : memref<64xf16>
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
                  iterator_types = ["parallel"]}
      ins(%x : memref<64xf16>) outs(%t : memref<64xf16>) {
  ^bb0(%in: f16, %out: f16):
    %0 = arith.negf %in : f16
    linalg.yield %0 : f16
  }
  linalg.generic {indexing_maps = [affine_map<(i) -> (-i + 63)>, affine_map<(i) -> (i)>],
                  iterator_types = ["parallel"]}
      ins(%t : memref<64xf16>) outs(%y : memref<64xf16>) {
  ^bb0(%in: f16, %out: f16):
    %0 = arith.addf %in, %in : f16
    linalg.yield %0 : f16
  }
  return
}

// -----

// Not one commutative op: a thread for each result.
// CHECK: gpu.func @serial_0
// CHECK: scf.for
// CHECK: scf.for {{.*}} iter_args
// CHECK-NOT: gpu.shuffle
func.func @serial(%x: memref<64x10xf32>, %y: memref<64xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                  iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<64x10xf32>) outs(%y : memref<64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.divf %out, %in : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// CHECK: gpu.func @scalar_0
// CHECK-SAME: known_block_size = array<i32: 32, 1, 1>, known_grid_size = array<i32: 1, 1, 1>
// CHECK: scf.if
// CHECK: math.exp
// CHECK-NEXT: memref.store
func.func @scalar(%x: memref<f32>, %y: memref<f32>) {
  %0 = memref.load %x[] : memref<f32>
  %1 = math.exp %0 : f32
  memref.store %1, %y[] : memref<f32>
  return
}

// -----

// What one writes through a view, the other reads: two kernels.
// CHECK: gpu.func @views_0
// CHECK: gpu.func @views_1
func.func @views(%x: memref<65x100xf32>, %sums: memref<64xf32>) {
  %low = memref.subview %x[0, 0] [64, 100] [1, 1]
      : memref<65x100xf32> to memref<64x100xf32, strided<[100, 1]>>
  %high = memref.subview %x[1, 0] [64, 100] [1, 1]
      : memref<65x100xf32> to memref<64x100xf32, strided<[100, 1], offset: 100>>
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>],
                  iterator_types = ["parallel", "parallel"]}
      outs(%high : memref<64x100xf32, strided<[100, 1], offset: 100>>) {
  ^bb0(%out: f32):
    %0 = math.exp %out : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                  iterator_types = ["parallel", "reduction"]}
      ins(%low : memref<64x100xf32, strided<[100, 1]>>) outs(%sums : memref<64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// Short rows: a warp for each, 8 in a block, without barriers.
// CHECK: gpu.func @short_rows_0
// CHECK-SAME: known_block_size = array<i32: 32, 8, 1>, known_grid_size = array<i32: 5, 1, 1>
// CHECK-NOT: gpu.barrier
func.func @short_rows(%x: memref<40x12xf32>, %sums: memref<40xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                  iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<40x12xf32>) outs(%sums : memref<40xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// Everything to one value: parts of it first; its initial value is no kernel of its own. The sum of
// narrow floats is kept in f32.
// CHECK: gpu.func @whole_0
// CHECK-SAME: known_grid_size = array<i32: 256, 1, 1>
// CHECK: arith.addf {{.*}} : f32
// CHECK: gpu.func @whole_1
// CHECK-SAME: known_grid_size = array<i32: 1, 1, 1>
// CHECK: arith.truncf
// CHECK-NOT: gpu.func @whole
func.func @whole(%x: memref<1048576xbf16>, %sum: memref<bf16>) {
  %zero = arith.constant 0.0 : bf16
  memref.store %zero, %sum[] : memref<bf16>
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>],
                  iterator_types = ["reduction"]}
      ins(%x : memref<1048576xbf16>) outs(%sum : memref<bf16>) {
  ^bb0(%in: bf16, %out: bf16):
    %0 = arith.addf %out, %in : bf16
    linalg.yield %0 : bf16
  }
  return
}

// -----

// The place of the greatest: partial results carry along whether there is any.
// CHECK: gpu.func @place_0
// CHECK: scf.for {{.*}} -> (i1, f32, i32, 
// CHECK: gpu.shuffle xor
func.func @place(%x: memref<64x1000xf32>, %best: memref<64xf32>, %place: memref<64xi32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>],
                  iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<64x1000xf32>) outs(%best, %place : memref<64xf32>, memref<64xi32>) {
  ^bb0(%in: f32, %out: f32, %at: i32):
    %j = linalg.index 1 : index
    %here = arith.index_cast %j : index to i32
    %greater = arith.cmpf ogt, %in, %out : f32
    %0 = arith.select %greater, %in, %out : f32
    %1 = arith.select %greater, %here, %at : i32
    linalg.yield %0, %1 : f32, i32
  }
  return
}

// -----

// A row's elements stay in the registers of a warp: read once, nothing between kernels' parts in memory; lanes combine by
// shuffles, four rows are done by a block.
// CHECK: gpu.module @resident_gpu attributes {lamina.scratch_bytes = 0 : i64}
// CHECK-NOT: memref.global
// CHECK: gpu.func @resident_0
// CHECK-SAME: known_block_size = array<i32: 32, 4, 1>, known_grid_size = array<i32: 1024, 1, 1>
// CHECK-COUNT-2: vector.load {{.*}} : memref<4096x256xf32>, vector<4xf32>
// CHECK-NOT: vector.load
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK-NOT: gpu.barrier
// CHECK-COUNT-2: vector.store {{.*}} : memref<4096x256xf32>, vector<4xf32>
// CHECK-NOT: gpu.func @resident_1
func.func @resident(%x: memref<4096x256xf32>, %y: memref<4096x256xf32>) {
  %zero = arith.constant 0.0 : f32
  %sums = memref.alloc() : memref<4096xf32>
  linalg.generic {indexing_maps = [affine_map<(i) -> ()>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%zero : f32) outs(%sums : memref<4096xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                  iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<4096x256xf32>) outs(%sums : memref<4096xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
                  iterator_types = ["parallel", "parallel"]}
      ins(%x, %sums : memref<4096x256xf32>, memref<4096xf32>) outs(%y : memref<4096x256xf32>) {
  ^bb0(%in: f32, %sum: f32, %out: f32):
    %0 = arith.divf %in, %sum : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// Where both rows and columns hold vectors, each thread turns a square in its registers.
// CHECK: gpu.func @squares_0
// CHECK-NOT: memref.get_global
// CHECK-COUNT-4: vector.load %arg0{{.*}} vector<4xf32>
// CHECK-COUNT-4: vector.store {{.*}} vector<4xf32>
func.func @squares(%x: memref<64x128xf32>, %y: memref<128x64xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>],
                  iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<64x128xf32>) outs(%y : memref<128x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  }
  return
}

// -----

// Of many elements a thread does several items, a block's width apart; a block that has all of its items asks once.
// CHECK: gpu.func @several_0
// CHECK-SAME: known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 513, 1, 1>
// CHECK: scf.if
// CHECK-COUNT-2: vector.load %arg0
// CHECK: else
// CHECK: scf.for
// CHECK-COUNT-1: vector.load %arg0
func.func @several(%x: memref<1050000xf32>, %y: memref<1050000xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : memref<1050000xf32>) outs(%y : memref<1050000xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %in, %in : f32
    linalg.yield %0 : f32
  }
  return
}
