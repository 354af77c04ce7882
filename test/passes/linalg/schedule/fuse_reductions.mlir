// RUN: %lamina-opt %s --pass-pipeline=linalg-fuse-reductions | FileCheck %s

#all = affine_map<(i, j) -> (i, j)>
#turned = affine_map<(i, j) -> (j, i)>
#first = affine_map<(i, j) -> (i)>
#one = affine_map<(i) -> ()>
#each = affine_map<(i) -> (i)>

// Eight rows at a time, in vectors of sixteen columns and of the eight that are left: their sums in
// registers, those of the columns in a row for each chunk of rows, which are added up at last. Two rows are
// left, too. What makes the elements does so on vectors, and nothing is stored of it.
// CHECK-LABEL: func.func @squares
// CHECK-SAME: (%[[X:.*]]: memref<1002x200xf32>, %[[R:.*]]: memref<1002xf32>, %[[C:.*]]: memref<200xf32>)
// CHECK-NOT: memref<1002x200xf32>
// CHECK: linalg.generic {{.*}} outs(%[[C]]
// CHECK: %[[P:.*]] = memref.alloc() : memref<16x200xf32>
// CHECK: scf.forall (%[[CHUNK:.*]]) in (16)
// CHECK: vector.store {{.*}}, %[[P]]{{.*}} vector<16xf32>
// CHECK: vector.store {{.*}}, %[[P]]{{.*}} vector<8xf32>
// CHECK: %{{[0-9]+}}:8 = scf.for %[[J:[a-z0-9]+]] = {{.*}} iter_args(
// CHECK: vector.load %[[P]][%[[CHUNK]], %[[J]]]
// CHECK: vector.load %[[X]]
// CHECK: arith.mulf {{.*}} : vector<16xf32>
// CHECK-COUNT-2: arith.addf {{.*}} fastmath<reassoc> : vector<16xf32>
// CHECK: vector.store {{.*}}, %[[P]][%[[CHUNK]], %[[J]]]
// CHECK: vector.load %[[X]]{{.*}}vector<8xf32>
// CHECK: vector.reduction <add>, {{.*}} vector<16xf32> into f32
// CHECK: vector.reduction <add>, {{.*}} vector<8xf32> into f32
// CHECK: memref.store {{.*}}, %[[R]]
// CHECK: %{{[0-9]+}}:2 = scf.for {{.*}} iter_args(
// CHECK: linalg.generic {{.*}} ins(%[[P]] : memref<16x200xf32>) outs(%[[C]] : memref<200xf32>)
func.func @squares(%x: memref<1002x200xf32>, %r: memref<1002xf32>, %c: memref<200xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = memref.alloc() : memref<1002x200xf32>
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%x : memref<1002x200xf32>) outs(%e : memref<1002x200xf32>) {
  ^bb0(%a: f32, %old: f32):
    %0 = arith.mulf %a, %a : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#one, #each], iterator_types = ["parallel"]} ins(%zero : f32) outs(%c : memref<200xf32>) {
  ^bb0(%a: f32, %old: f32):
    linalg.yield %a : f32
  }
  linalg.generic {indexing_maps = [#turned, #first], iterator_types = ["parallel", "reduction"]} ins(%e : memref<1002x200xf32>) outs(%c : memref<200xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %0 = arith.addf %sum, %a fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#one, #each], iterator_types = ["parallel"]} ins(%zero : f32) outs(%r : memref<1002xf32>) {
  ^bb0(%a: f32, %old: f32):
    linalg.yield %a : f32
  }
  linalg.generic {indexing_maps = [#all, #first], iterator_types = ["parallel", "reduction"]} ins(%e : memref<1002x200xf32>) outs(%r : memref<1002xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %0 = arith.addf %sum, %a fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  return
}

// Rows of few vectors are left alone, and so are two reductions that go the same way.
// CHECK-LABEL: func.func @narrow
// CHECK-COUNT-4: linalg.generic
func.func @narrow(%x: memref<1000x20xf32>, %r: memref<1000xf32>, %c: memref<20xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [#one, #each], iterator_types = ["parallel"]} ins(%zero : f32) outs(%r : memref<1000xf32>) {
  ^bb0(%a: f32, %old: f32):
    linalg.yield %a : f32
  }
  linalg.generic {indexing_maps = [#one, #each], iterator_types = ["parallel"]} ins(%zero : f32) outs(%c : memref<20xf32>) {
  ^bb0(%a: f32, %old: f32):
    linalg.yield %a : f32
  }
  linalg.generic {indexing_maps = [#all, #first], iterator_types = ["parallel", "reduction"]} ins(%x : memref<1000x20xf32>) outs(%r : memref<1000xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %0 = arith.addf %sum, %a fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#turned, #first], iterator_types = ["parallel", "reduction"]} ins(%x : memref<1000x20xf32>) outs(%c : memref<20xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %0 = arith.addf %sum, %a fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  return
}

// CHECK-LABEL: func.func @along_rows
// CHECK-COUNT-4: linalg.generic
func.func @along_rows(%x: memref<100x200xf32>, %r: memref<100xf32>, %c: memref<100xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [#one, #each], iterator_types = ["parallel"]} ins(%zero : f32) outs(%r : memref<100xf32>) {
  ^bb0(%a: f32, %old: f32):
    linalg.yield %a : f32
  }
  linalg.generic {indexing_maps = [#one, #each], iterator_types = ["parallel"]} ins(%zero : f32) outs(%c : memref<100xf32>) {
  ^bb0(%a: f32, %old: f32):
    linalg.yield %a : f32
  }
  linalg.generic {indexing_maps = [#all, #first], iterator_types = ["parallel", "reduction"]} ins(%x : memref<100x200xf32>) outs(%r : memref<100xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %0 = arith.addf %sum, %a fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#all, #first], iterator_types = ["parallel", "reduction"]} ins(%x : memref<100x200xf32>) outs(%c : memref<100xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %0 = arith.maximumf %sum, %a : f32
    linalg.yield %0 : f32
  }
  return
}

// Two down columns, of an array and of its exponentials: eight rows at a time. A single one of long rows that costs
// little is left alone.
// CHECK-LABEL: func.func @columns
// CHECK-NOT: memref.alloc() : memref<128x64xf32>
// CHECK-COUNT-2: memref.alloc() : memref<1x64xf32>
// CHECK-COUNT-2: vector.load %{{.*}} : memref<1x64xf32>, vector<16xf32>
// CHECK-COUNT-8: math.exp {{.*}} : vector<16xf32>
// CHECK-COUNT-2: linalg.generic {{.*}} ins(%{{.*}} : memref<1x64xf32>) outs(%{{.*}} : memref<64xf32>)
func.func @columns(%x: memref<128x64xf32>, %r: memref<64xf32>, %c: memref<64xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = memref.alloc() : memref<128x64xf32>
  linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%x : memref<128x64xf32>) outs(%e : memref<128x64xf32>) {
  ^bb0(%a: f32, %old: f32):
    %0 = math.exp %a : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#one, #each], iterator_types = ["parallel"]} ins(%zero : f32) outs(%r : memref<64xf32>) {
  ^bb0(%a: f32, %old: f32):
    linalg.yield %a : f32
  }
  linalg.generic {indexing_maps = [#one, #each], iterator_types = ["parallel"]} ins(%zero : f32) outs(%c : memref<64xf32>) {
  ^bb0(%a: f32, %old: f32):
    linalg.yield %a : f32
  }
  linalg.generic {indexing_maps = [#turned, #first], iterator_types = ["parallel", "reduction"]} ins(%x : memref<128x64xf32>) outs(%r : memref<64xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %0 = arith.addf %sum, %a fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#turned, #turned, #first], iterator_types = ["parallel", "reduction"]} ins(%x, %e : memref<128x64xf32>, memref<128x64xf32>) outs(%c : memref<64xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %sum, %0 fastmath<reassoc> : f32
    linalg.yield %1 : f32
  }
  return
}

// CHECK-LABEL: func.func @long_rows
// CHECK-COUNT-2: linalg.generic
func.func @long_rows(%x: memref<128x1024xf32>, %c: memref<1024xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [#one, #each], iterator_types = ["parallel"]} ins(%zero : f32) outs(%c : memref<1024xf32>) {
  ^bb0(%a: f32, %old: f32):
    linalg.yield %a : f32
  }
  linalg.generic {indexing_maps = [#turned, #first], iterator_types = ["parallel", "reduction"]} ins(%x : memref<128x1024xf32>) outs(%c : memref<1024xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %0 = arith.addf %sum, %a fastmath<reassoc> : f32
    linalg.yield %0 : f32
  }
  return
}

// Of two arrays side by side: a walk each.
// CHECK-LABEL: func.func @of_two
// CHECK: memref.alloc() : memref<1x64xf32>
// CHECK-COUNT-8: math.exp {{.*}} : vector<16xf32>
// CHECK: memref.alloc() : memref<1x64xf32>
// CHECK-COUNT-8: math.exp {{.*}} : vector<16xf32>
func.func @of_two(%x: memref<128x64xf32>, %y: memref<128x64xf32>, %r: memref<64xf32>, %c: memref<64xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [#one, #each], iterator_types = ["parallel"]} ins(%zero : f32) outs(%r : memref<64xf32>) {
  ^bb0(%a: f32, %old: f32):
    linalg.yield %a : f32
  }
  linalg.generic {indexing_maps = [#one, #each], iterator_types = ["parallel"]} ins(%zero : f32) outs(%c : memref<64xf32>) {
  ^bb0(%a: f32, %old: f32):
    linalg.yield %a : f32
  }
  linalg.generic {indexing_maps = [#turned, #first], iterator_types = ["parallel", "reduction"]} ins(%x : memref<128x64xf32>) outs(%r : memref<64xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %0 = math.exp %a : f32
    %1 = arith.addf %sum, %0 fastmath<reassoc> : f32
    linalg.yield %1 : f32
  }
  linalg.generic {indexing_maps = [#turned, #first], iterator_types = ["parallel", "reduction"]} ins(%y : memref<128x64xf32>) outs(%c : memref<64xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %0 = math.exp %a : f32
    %1 = arith.addf %sum, %0 fastmath<reassoc> : f32
    linalg.yield %1 : f32
  }
  return
}
