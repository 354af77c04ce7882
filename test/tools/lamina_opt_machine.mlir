// What a module's machine decides: tasks, and blocks that stay in caches.
// RUN: %lamina-opt %s --pass-pipeline="schedule-generics{explain=true}" | FileCheck %s --check-prefix=LARGE
// RUN: %lamina-opt %s --machine=small-caches --pass-pipeline="schedule-generics{explain=true}" | FileCheck %s --check-prefix=SMALL
// RUN: %lamina-opt %s --machine=reference,parallel_ns=100,task_ns=100 --pass-pipeline="schedule-generics{explain=true}" | FileCheck %s --check-prefix=TASKS
// RUN: not %lamina-opt %s --machine=cray 2>&1 | FileCheck %s --check-prefix=ERROR

// ERROR: lamina-opt: no machine is called 'cray'; known are reference,

// LARGE: func.func @transpose({{.*}}lamina.schedule = "s0: j:64 i:64 j i; tile s0; parallel s0 1 grain 2"
// Lines of the result go past caches that are smaller.
// SMALL: func.func @transpose({{.*}}lamina.schedule = "s0: i:32 j:512 j i; tile s0; parallel s0 1 grain 3"
// TASKS: func.func @transpose({{.*}}parallel s0 2 grain 1"
func.func @transpose(%x: memref<512x512xf32>, %y: memref<512x512xf32>) {
  linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j, i)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%x : memref<512x512xf32>) outs(%y : memref<512x512xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  return
}
