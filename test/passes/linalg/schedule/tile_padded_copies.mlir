// RUN: %lamina-opt %s --machine=reference,parallel_ns=1000,task_ns=100,l2_bytes=16384 --pass-pipeline='linalg-tile-padded-copies' | FileCheck %s

#no = affine_map<(b, h, w, f) -> ()>
#id = affine_map<(b, h, w, f) -> (b, h, w, f)>
#f = affine_map<(b, h, w, f) -> (f)>
#in = affine_map<(b, h, w, f, i, j, k) -> (b, h + i, w + j, k)>
#in2 = affine_map<(b, h, w, f, i, j, k) -> (b, h * 2 + i, w * 2 + j, k)>
#by = affine_map<(b, h, w, f, i, j, k) -> (i, j, k, f)>
#out = affine_map<(b, h, w, f, i, j, k) -> (b, h, w, f)>

// Parts of four by four: windows of six by six in tasks, and of the results the parts
// that belong to them. Rows and columns outside of the source are zeros.
// CHECK-LABEL: func.func @convolution
// CHECK-NOT: memref<2x10x34x4xf32>
// CHECK: scf.forall (%[[B:.*]], %[[H:.*]], %[[W:.*]]) = (0, 0, 0) to (2, 8, 32) step (1, 4, 4)
// CHECK: %[[SUMS:.*]] = memref.alloc() : memref<1x4x4x4xf32>
// CHECK: %[[D:.*]] = memref.subview %arg3[%[[B]], %[[H]], %[[W]], 0] [1, 4, 4, 4]
// CHECK: %[[WINDOW:.*]] = memref.alloc() : memref<1x6x6x4xf32>
// CHECK: scf.for %[[ROW:.*]] =
// CHECK: memref.subview %[[WINDOW]][0, %[[ROW]], 0, 0] [1, 1, 6, 4]
// CHECK: linalg.generic {{.*}} outs(
// CHECK: scf.for
// CHECK: scf.for
// CHECK: scf.for
// CHECK: scf.for
// CHECK: scf.for
// CHECK: memref.subview %arg0[%[[B]], %{{.*}}, %{{.*}}, 0] [1, 1, 1, 4]
// CHECK: linalg.generic {{.*}} outs(%[[SUMS]]
// CHECK: linalg.generic {{.*}} ins(%[[WINDOW]], %arg1 : {{.*}} outs(%[[SUMS]] {{.*}} attrs = {lamina.part}
// CHECK: linalg.generic {{.*}} ins(%[[SUMS]], %arg2 : {{.*}} outs(%[[D]]
// CHECK: lamina.grain
// CHECK-NEXT: return
func.func @convolution(%x: memref<2x8x32x4xf32>, %k: memref<3x3x4x4xf32>, %bias: memref<4xf32>, %d: memref<2x8x32x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %c = memref.alloc() : memref<2x8x32x4xf32>
  linalg.generic {indexing_maps = [#no, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%zero : f32) outs(%c : memref<2x8x32x4xf32>) {
  ^bb0(%u: f32, %v: f32):
    linalg.yield %u : f32
  }
  %t = memref.alloc() : memref<2x10x34x4xf32>
  linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%t : memref<2x10x34x4xf32>) {
  ^bb0(%v: f32):
    linalg.yield %zero : f32
  }
  %s = memref.subview %t[0, 1, 1, 0] [2, 8, 32, 4] [1, 1, 1, 1] : memref<2x10x34x4xf32> to memref<2x8x32x4xf32, strided<[1360, 136, 4, 1], offset: 140>>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x : memref<2x8x32x4xf32>) outs(%s : memref<2x8x32x4xf32, strided<[1360, 136, 4, 1], offset: 140>>) {
  ^bb0(%u: f32, %v: f32):
    linalg.yield %u : f32
  }
  linalg.generic {indexing_maps = [#in, #by, #out], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%t, %k : memref<2x10x34x4xf32>, memref<3x3x4x4xf32>) outs(%c : memref<2x8x32x4xf32>) {
  ^bb0(%u: f32, %v: f32, %w: f32):
    %0 = arith.mulf %u, %v : f32
    %1 = arith.addf %w, %0 : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [#id, #f, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%c, %bias : memref<2x8x32x4xf32>, memref<4xf32>) outs(%d : memref<2x8x32x4xf32>) {
  ^bb0(%u: f32, %v: f32, %w: f32):
    %0 = arith.addf %u, %v : f32
    linalg.yield %0 : f32
  }
  return
}

// In steps of two, windows begin at twice the part's place. Nothing follows: the result's own part.
// CHECK-LABEL: func.func @in_steps
// CHECK: scf.forall (%[[H:.*]], %[[W:.*]]) = (0, 0) to (8, 32) step (2, 2)
// CHECK: %[[D:.*]] = memref.subview %arg2[0, %[[H]], %[[W]], 0] [1, 2, 2, 4]
// CHECK: memref.alloc() : memref<1x5x5x4xf32>
// CHECK: %[[TWO:.*]] = arith.constant 2 : index
// CHECK: arith.muli %[[H]], %[[TWO]] : index
// CHECK: linalg.generic {{.*}} outs(%[[D]] {{.*}} attrs = {lamina.part}
func.func @in_steps(%x: memref<1x16x64x4xf32>, %k: memref<3x3x4x4xf32>, %c: memref<1x8x32x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %t = memref.alloc() : memref<1x17x65x4xf32>
  linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%t : memref<1x17x65x4xf32>) {
  ^bb0(%v: f32):
    linalg.yield %zero : f32
  }
  %s = memref.subview %t[0, 0, 0, 0] [1, 16, 64, 4] [1, 1, 1, 1] : memref<1x17x65x4xf32> to memref<1x16x64x4xf32, strided<[4420, 260, 4, 1]>>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x : memref<1x16x64x4xf32>) outs(%s : memref<1x16x64x4xf32, strided<[4420, 260, 4, 1]>>) {
  ^bb0(%u: f32, %v: f32):
    linalg.yield %u : f32
  }
  linalg.generic {indexing_maps = [#in2, #by, #out], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%t, %k : memref<1x17x65x4xf32>, memref<3x3x4x4xf32>) outs(%c : memref<1x8x32x4xf32>) {
  ^bb0(%u: f32, %v: f32, %w: f32):
    %0 = arith.mulf %u, %v : f32
    %1 = arith.addf %w, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// A result that lies where the source does would be written before other parts have read that.
// CHECK-LABEL: func.func @in_place
// CHECK-NOT: scf.forall
// CHECK: return
func.func @in_place(%x: memref<2x8x32x4xf32>, %k: memref<3x3x4x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %t = memref.alloc() : memref<2x10x34x4xf32>
  linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%t : memref<2x10x34x4xf32>) {
  ^bb0(%v: f32):
    linalg.yield %zero : f32
  }
  %s = memref.subview %t[0, 1, 1, 0] [2, 8, 32, 4] [1, 1, 1, 1] : memref<2x10x34x4xf32> to memref<2x8x32x4xf32, strided<[1360, 136, 4, 1], offset: 140>>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x : memref<2x8x32x4xf32>) outs(%s : memref<2x8x32x4xf32, strided<[1360, 136, 4, 1], offset: 140>>) {
  ^bb0(%u: f32, %v: f32):
    linalg.yield %u : f32
  }
  linalg.generic {indexing_maps = [#in, #by, #out], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%t, %k : memref<2x10x34x4xf32>, memref<3x3x4x4xf32>) outs(%x : memref<2x8x32x4xf32>) {
  ^bb0(%u: f32, %v: f32, %w: f32):
    %0 = arith.mulf %u, %v : f32
    %1 = arith.addf %w, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// What makes the source makes the parts of it in the windows.
// CHECK-LABEL: func.func @made
// CHECK-NOT: memref<2x8x32x4xf32>{{$}}
// CHECK: scf.forall (%[[B:.*]], %[[H:.*]], %[[W:.*]]) = (0, 0, 0)
// CHECK: %[[WINDOW:.*]] = memref.alloc() : memref<1x6x10x4xf32>
// CHECK: %[[PLACE:.*]] = memref.subview %[[WINDOW]][0, %{{.*}}, %{{.*}}, 0] [1, 1, 1, 4]
// CHECK: %[[X:.*]] = memref.subview %arg0[%[[B]], %{{.*}}, %{{.*}}, 0] [1, 1, 1, 4]
// CHECK: linalg.generic {{.*}} ins(%[[X]], %arg1 : {{.*}} outs(%[[PLACE]]
// CHECK: arith.maximumf
// CHECK: linalg.generic {{.*}} ins(%[[WINDOW]], %arg2
func.func @made(%x: memref<2x8x32x4xf32>, %s: memref<4xf32>, %k: memref<3x3x4x4xf32>, %c: memref<2x8x32x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = memref.alloc() : memref<2x8x32x4xf32>
  linalg.generic {indexing_maps = [#id, #f, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x, %s : memref<2x8x32x4xf32>, memref<4xf32>) outs(%e : memref<2x8x32x4xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.maximumf %0, %zero : f32
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

// What costs much would be made twice where two windows meet.
// CHECK-LABEL: func.func @costly
// CHECK-NOT: scf.forall
// CHECK: return
func.func @costly(%x: memref<2x8x32x4xf32>, %s: memref<4xf32>, %k: memref<3x3x4x4xf32>, %c: memref<2x8x32x4xf32>) {
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
