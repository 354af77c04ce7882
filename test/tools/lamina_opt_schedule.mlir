// Schedules that a file says instead of those that would be chosen.
// RUN: printf '# columns first\n@copy s0: j i\n' > %t.txt
// RUN: %lamina-opt %s --schedule-override=%t.txt --schedule-generics | FileCheck %s
// RUN: printf '@copy s0: j\n' > %t.wrong.txt
// RUN: not %lamina-opt %s --schedule-override=%t.wrong.txt --schedule-generics 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: printf '\n@paste s0: j i\n' > %t.unknown.txt
// RUN: not %lamina-opt %s --schedule-override=%t.unknown.txt 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// WRONG: can't be scheduled as 's0: j': s0: no loop over i
// UNKNOWN: .txt:2: no function is called @paste; there are @copy

// CHECK-LABEL: func.func @copy
// CHECK: scf.for %[[J:[a-z0-9]+]] = %{{[a-z0-9_]+}} to %c5
// CHECK: scf.for %[[I:[a-z0-9]+]] = %{{[a-z0-9_]+}} to %c3
// CHECK: memref.load %{{[a-z0-9]+}}[%[[I]], %[[J]]]
func.func @copy(%x: memref<3x5xf32>, %y: memref<3x5xf32>) {
  linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%x : memref<3x5xf32>) outs(%y : memref<3x5xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  return
}
