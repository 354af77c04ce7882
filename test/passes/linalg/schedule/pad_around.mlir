// RUN: %lamina-opt %s --machine=reference,l2_bytes=16384 --pass-pipeline='linalg-pad-around' | FileCheck %s

#no = affine_map<(b, h, w, f) -> ()>
#id = affine_map<(b, h, w, f) -> (b, h, w, f)>
#f = affine_map<(b, h, w, f) -> (f)>
#in = affine_map<(b, h, w, f, i, j, k) -> (b, h + i, w + j, k)>
#by = affine_map<(b, h, w, f, i, j, k) -> (i, j, k, f)>
#out = affine_map<(b, h, w, f, i, j, k) -> (b, h, w, f)>

// Zeros are written around the source, and its elements where the copy lies.
// CHECK-LABEL: func.func @made
// CHECK: %[[PADDED:.*]] = memref.alloc() : memref<2x10x34x4xf32>
// CHECK-NOT: memref.alloc
// CHECK: memref.subview %[[PADDED]][0, 0, 0, 0] [2, 1, 34, 4]
// CHECK: memref.subview %[[PADDED]][0, 9, 0, 0] [2, 1, 34, 4]
// CHECK: memref.subview %[[PADDED]][0, 1, 0, 0] [2, 8, 1, 4]
// CHECK: memref.subview %[[PADDED]][0, 1, 33, 0] [2, 8, 1, 4]
// CHECK: %[[INSIDE:.*]] = memref.subview %[[PADDED]][0, 1, 1, 0] [2, 8, 32, 4]
// CHECK: linalg.generic {{.*}} ins(%arg0, %arg1 : {{.*}} outs(%[[INSIDE]]
// CHECK: math.exp
// CHECK: linalg.generic {{.*}} ins(%[[PADDED]], %arg2
// CHECK-NOT: linalg.generic
func.func @made(%x: memref<2x8x32x4xf32>, %s: memref<4xf32>, %k: memref<3x3x4x4xf32>, %c: memref<2x8x32x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = memref.alloc() : memref<2x8x32x4xf32>
  linalg.generic {indexing_maps = [#id, #f, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x, %s : memref<2x8x32x4xf32>, memref<4xf32>) outs(%e : memref<2x8x32x4xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = math.exp %0 : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [#no, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%zero : f32) outs(%c : memref<2x8x32x4xf32>) {
  ^bb0(%u: f32, %v: f32):
    linalg.yield %u : f32
  }
  %t = memref.alloc() : memref<2x10x34x4xf32>
  linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%t : memref<2x10x34x4xf32>) {
  ^bb0(%v: f32):
    linalg.yield %zero : f32
  }
  %v = memref.subview %t[0, 1, 1, 0] [2, 8, 32, 4] [1, 1, 1, 1] : memref<2x10x34x4xf32> to memref<2x8x32x4xf32, strided<[1360, 136, 4, 1], offset: 140>>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%e : memref<2x8x32x4xf32>) outs(%v : memref<2x8x32x4xf32, strided<[1360, 136, 4, 1], offset: 140>>) {
  ^bb0(%p: f32, %q: f32):
    linalg.yield %p : f32
  }
  linalg.generic {indexing_maps = [#in, #by, #out], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%t, %k : memref<2x10x34x4xf32>, memref<3x3x4x4xf32>) outs(%c : memref<2x8x32x4xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %r, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// A source that is there is copied; of one that something else reads, too, all is made.
// CHECK-LABEL: func.func @copied
// CHECK: %[[INSIDE:.*]] = memref.subview %{{.*}}[0, 1, 1, 0] [2, 8, 32, 4]
// CHECK-NEXT: linalg.generic {{.*}} ins(%{{.*}} : {{.*}} outs(%[[INSIDE]]
// CHECK-LABEL: func.func @read_elsewhere
// CHECK: %[[MADE:.*]] = memref.alloc() : memref<2x8x32x4xf32>
// CHECK: outs(%[[MADE]]
// CHECK: memref.subview %{{.*}}[0, 1, 1, 0] [2, 8, 32, 4]
// CHECK-NEXT: linalg.generic {{.*}} ins(%{{.*}} : {{.*}} outs(
// CHECK: memref.copy %[[MADE]], %arg4
func.func @copied(%x: memref<2x8x32x4xf32>, %s: memref<4xf32>, %k: memref<3x3x4x4xf32>, %c: memref<2x8x32x4xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [#no, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%zero : f32) outs(%c : memref<2x8x32x4xf32>) {
  ^bb0(%u: f32, %v: f32):
    linalg.yield %u : f32
  }
  %t = memref.alloc() : memref<2x10x34x4xf32>
  linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%t : memref<2x10x34x4xf32>) {
  ^bb0(%v: f32):
    linalg.yield %zero : f32
  }
  %v = memref.subview %t[0, 1, 1, 0] [2, 8, 32, 4] [1, 1, 1, 1] : memref<2x10x34x4xf32> to memref<2x8x32x4xf32, strided<[1360, 136, 4, 1], offset: 140>>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x : memref<2x8x32x4xf32>) outs(%v : memref<2x8x32x4xf32, strided<[1360, 136, 4, 1], offset: 140>>) {
  ^bb0(%p: f32, %q: f32):
    linalg.yield %p : f32
  }
  linalg.generic {indexing_maps = [#in, #by, #out], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%t, %k : memref<2x10x34x4xf32>, memref<3x3x4x4xf32>) outs(%c : memref<2x8x32x4xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %r, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

func.func @read_elsewhere(%x: memref<2x8x32x4xf32>, %s: memref<4xf32>, %k: memref<3x3x4x4xf32>, %c: memref<2x8x32x4xf32>, %d: memref<2x8x32x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = memref.alloc() : memref<2x8x32x4xf32>
  linalg.generic {indexing_maps = [#id, #f, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x, %s : memref<2x8x32x4xf32>, memref<4xf32>) outs(%e : memref<2x8x32x4xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = math.exp %0 : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [#no, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%zero : f32) outs(%c : memref<2x8x32x4xf32>) {
  ^bb0(%u: f32, %v: f32):
    linalg.yield %u : f32
  }
  %t = memref.alloc() : memref<2x10x34x4xf32>
  linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%t : memref<2x10x34x4xf32>) {
  ^bb0(%v: f32):
    linalg.yield %zero : f32
  }
  %v = memref.subview %t[0, 1, 1, 0] [2, 8, 32, 4] [1, 1, 1, 1] : memref<2x10x34x4xf32> to memref<2x8x32x4xf32, strided<[1360, 136, 4, 1], offset: 140>>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%e : memref<2x8x32x4xf32>) outs(%v : memref<2x8x32x4xf32, strided<[1360, 136, 4, 1], offset: 140>>) {
  ^bb0(%p: f32, %q: f32):
    linalg.yield %p : f32
  }
  linalg.generic {indexing_maps = [#in, #by, #out], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%t, %k : memref<2x10x34x4xf32>, memref<3x3x4x4xf32>) outs(%c : memref<2x8x32x4xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %r, %0 : f32
    linalg.yield %1 : f32
  }
  memref.copy %e, %d : memref<2x8x32x4xf32> to memref<2x8x32x4xf32>
  return
}

// Of a few elements all are filled.
// CHECK-LABEL: func.func @small
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : memref<2x4x4x4xf32>)
// CHECK: memref.subview %{{.*}}[0, 1, 1, 0] [2, 2, 2, 4]
func.func @small(%x: memref<2x2x2x4xf32>, %s: memref<4xf32>, %k: memref<3x3x4x4xf32>, %c: memref<2x2x2x4xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [#no, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%zero : f32) outs(%c : memref<2x2x2x4xf32>) {
  ^bb0(%u: f32, %v: f32):
    linalg.yield %u : f32
  }
  %t = memref.alloc() : memref<2x4x4x4xf32>
  linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%t : memref<2x4x4x4xf32>) {
  ^bb0(%v: f32):
    linalg.yield %zero : f32
  }
  %v = memref.subview %t[0, 1, 1, 0] [2, 2, 2, 4] [1, 1, 1, 1] : memref<2x4x4x4xf32> to memref<2x2x2x4xf32, strided<[64, 16, 4, 1], offset: 20>>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x : memref<2x2x2x4xf32>) outs(%v : memref<2x2x2x4xf32, strided<[64, 16, 4, 1], offset: 20>>) {
  ^bb0(%p: f32, %q: f32):
    linalg.yield %p : f32
  }
  linalg.generic {indexing_maps = [#in, #by, #out], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%t, %k : memref<2x4x4x4xf32>, memref<3x3x4x4xf32>) outs(%c : memref<2x2x2x4xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %r, %0 : f32
    linalg.yield %1 : f32
  }
  return
}
