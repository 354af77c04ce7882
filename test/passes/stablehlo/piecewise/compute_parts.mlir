// RUN: %lamina-opt %s --stablehlo-compute-parts --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @padded
// CHECK: %[[Z:.*]] = stablehlo.constant
// CHECK-NOT: stablehlo.pad
// CHECK: %[[E:.*]] = tensor.empty() : tensor<102xf32>
// CHECK: %[[B:.*]] = stablehlo.broadcast_in_dim %[[Z]], dims = [] : (tensor<f32>) -> tensor<2xf32>
// CHECK: %[[Y0:.*]] = stablehlo.slice %arg1 [0:2]
// CHECK: %[[R0:.*]] = stablehlo.multiply %[[B]], %[[Y0]] : tensor<2xf32>
// CHECK: %[[P0:.*]] = tensor.insert_slice %[[R0]] into %[[E]][0] [2] [1]
// CHECK: %[[Y1:.*]] = stablehlo.slice %arg1 [2:102]
// CHECK: %[[R1:.*]] = stablehlo.multiply %arg0, %[[Y1]] : tensor<100xf32>
// CHECK: %[[P1:.*]] = tensor.insert_slice %[[R1]] into %[[P0]][2] [100] [1]
// CHECK: return %[[P1]]
func.func @padded(%x: tensor<100xf32>, %y: tensor<102xf32>) -> tensor<102xf32> {
  %z = stablehlo.constant dense<1.0> : tensor<f32>
  %p = stablehlo.pad %x, %z, low = [2], high = [0], interior = [0] : (tensor<100xf32>, tensor<f32>) -> tensor<102xf32>
  %r = stablehlo.multiply %p, %y : tensor<102xf32>
  return %r : tensor<102xf32>
}

// -----

// What is overwritten is read part by part, each before it is written.
// CHECK-LABEL: func.func @in_place
// CHECK: %[[Y0:.*]] = tensor.extract_slice %arg1[0] [2] [1]
// CHECK: %[[R0:.*]] = stablehlo.add %{{.*}}, %[[Y0]] : tensor<2xf32>
// CHECK: %[[P0:.*]] = tensor.insert_slice %[[R0]] into %arg1[0] [2] [1]
// CHECK: %[[Y1:.*]] = tensor.extract_slice %[[P0]][2] [100] [1]
// CHECK: %[[R1:.*]] = stablehlo.add %arg0, %[[Y1]] : tensor<100xf32>
// CHECK: %[[P1:.*]] = tensor.insert_slice %[[R1]] into %[[P0]][2] [100] [1]
// CHECK: return %[[P1]]
func.func @in_place(%x: tensor<100xf32>, %y: tensor<102xf32> {lamina.inout = 0 : i32}) -> tensor<102xf32> {
  %z = stablehlo.constant dense<1.0> : tensor<f32>
  %p = stablehlo.pad %x, %z, low = [2], high = [0], interior = [0] : (tensor<100xf32>, tensor<f32>) -> tensor<102xf32>
  %r = stablehlo.add %p, %y : tensor<102xf32>
  return %r : tensor<102xf32>
}

// -----

// A part that is all that is read of the argument at that place is read there, too, and so is what
// stays as it is.
// CHECK-LABEL: func.func @kept_around
// CHECK: %[[P:.*]] = tensor.insert_slice %{{.*}} into %arg0[0] [1] [1]
// CHECK: %[[OLD:.*]] = tensor.extract_slice %[[P]][1] [100] [1]
// CHECK: %[[NEW:.*]] = stablehlo.add %[[OLD]], %arg1 : tensor<100xf32>
// CHECK: tensor.insert_slice %[[NEW]] into %[[P]][1] [100] [1]
// CHECK-NOT: stablehlo.slice
// CHECK: return
func.func @kept_around(%x: tensor<101xf32> {lamina.inout = 0 : i32}, %y: tensor<100xf32>) -> tensor<101xf32> {
  %0 = stablehlo.slice %x [0:1] : (tensor<101xf32>) -> tensor<1xf32>
  %1 = stablehlo.slice %x [1:101] : (tensor<101xf32>) -> tensor<100xf32>
  %2 = stablehlo.add %1, %y : tensor<100xf32>
  %3 = stablehlo.concatenate %0, %2, dim = 0 : (tensor<1xf32>, tensor<100xf32>) -> tensor<101xf32>
  return %3 : tensor<101xf32>
}

// -----

// Both are cut where either has a boundary; what is the same everywhere stays so, and indices go on.
// CHECK-LABEL: func.func @two
// CHECK: %[[A:.*]] = stablehlo.slice %arg0 [0:3, 0:10]
// CHECK: stablehlo.iota dim = 0 : tensor<3x10xi32>
// CHECK: tensor.insert_slice {{.*}}[0, 0] [3, 10]
// CHECK: stablehlo.slice %arg0 [3:5, 0:10]
// CHECK: %[[I:.*]] = stablehlo.iota dim = 0 : tensor<2x10xi32>
// CHECK: %[[S:.*]] = stablehlo.constant dense<3> : tensor<2x10xi32>
// CHECK: stablehlo.add %[[I]], %[[S]]
// CHECK: tensor.insert_slice {{.*}}[3, 0] [2, 10]
// CHECK: stablehlo.slice %arg0 [2:5, 0:10]
// CHECK: tensor.insert_slice {{.*}}[5, 0] [3, 10]
func.func @two(%a: tensor<5x10xi32>, %b: tensor<3x10xi32>) -> tensor<8x10xi32> {
  %i = stablehlo.iota dim = 0 : tensor<8x10xi32>
  %0 = stablehlo.concatenate %a, %b, dim = 0 : (tensor<5x10xi32>, tensor<3x10xi32>) -> tensor<8x10xi32>
  %1 = stablehlo.concatenate %b, %a, dim = 0 : (tensor<3x10xi32>, tensor<5x10xi32>) -> tensor<8x10xi32>
  %2 = stablehlo.add %0, %1 : tensor<8x10xi32>
  %3 = stablehlo.add %2, %i : tensor<8x10xi32>
  return %3 : tensor<8x10xi32>
}

// -----

// Every second element is a part; the last row of a length that is no number of steps is by itself.
// CHECK-LABEL: func.func @between
// CHECK: %[[E:.*]] = tensor.empty() : tensor<101xf32>
// CHECK: %[[Y0:.*]] = stablehlo.slice %arg1 [0:99:2]
// CHECK: %[[R0:.*]] = stablehlo.multiply %{{.*}}, %[[Y0]] : tensor<50xf32>
// CHECK: %[[P0:.*]] = tensor.insert_slice %[[R0]] into %[[E]][0] [50] [2]
// CHECK: %[[Y1:.*]] = stablehlo.slice %arg1 [1:100:2]
// CHECK: %[[R1:.*]] = stablehlo.multiply %arg0, %[[Y1]] : tensor<50xf32>
// CHECK: %[[P1:.*]] = tensor.insert_slice %[[R1]] into %[[P0]][1] [50] [2]
// CHECK: tensor.insert_slice %{{.*}} into %[[P1]][100] [1] [1]
func.func @between(%x: tensor<50xf32>, %y: tensor<101xf32>) -> tensor<101xf32> {
  %z = stablehlo.constant dense<1.0> : tensor<f32>
  %p = stablehlo.pad %x, %z, low = [1], high = [1], interior = [1] : (tensor<50xf32>, tensor<f32>) -> tensor<101xf32>
  %r = stablehlo.multiply %p, %y : tensor<101xf32>
  return %r : tensor<101xf32>
}

// -----

// Rows apart, counted and reversed.
// CHECK-LABEL: func.func @rows_between
// CHECK: stablehlo.iota dim = 0 : tensor<4x9xi32>
// CHECK: %[[Y:.*]] = stablehlo.slice %arg1 [2:12:3, 0:9]
// CHECK: %[[R:.*]] = stablehlo.reverse %[[Y]], dims = [0]
// CHECK: %[[S:.*]] = stablehlo.add %arg0, %[[R]]
// CHECK: tensor.insert_slice {{.*}}[0, 0] [4, 9] [3, 1]
// CHECK: stablehlo.slice %arg1 [1:11:3, 0:9]
// CHECK: tensor.insert_slice {{.*}}[1, 0] [4, 9] [3, 1]
// CHECK: tensor.insert_slice {{.*}}[2, 0] [4, 9] [3, 1]
func.func @rows_between(%x: tensor<4x9xi32>, %y: tensor<12x9xi32>) -> tensor<12x9xi32> {
  %z = stablehlo.constant dense<1> : tensor<i32>
  %i = stablehlo.iota dim = 0 : tensor<12x9xi32>
  %p = stablehlo.pad %x, %z, low = [0, 0], high = [2, 0], interior = [2, 0] : (tensor<4x9xi32>, tensor<i32>) -> tensor<12x9xi32>
  %q = stablehlo.reverse %y, dims = [0] : tensor<12x9xi32>
  %s = stablehlo.add %p, %q : tensor<12x9xi32>
  %r = stablehlo.multiply %i, %s : tensor<12x9xi32>
  return %r : tensor<12x9xi32>
}

// -----

// Columns too far apart for vectors, of elements that vectors don't have; rows of six elements, not
// worth a loop each.
// CHECK-LABEL: func.func @alone
// CHECK: stablehlo.pad
// CHECK: stablehlo.pad
// CHECK: stablehlo.concatenate
// CHECK-NOT: tensor.
func.func @alone(%x: tensor<100xf32>, %b: tensor<100xi1>, %y: tensor<50x6xf32>) -> (tensor<892xf32>, tensor<199xi1>, tensor<50x12xf32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %f = stablehlo.constant dense<false> : tensor<i1>
  %p = stablehlo.pad %x, %z, low = [0], high = [0], interior = [8] : (tensor<100xf32>, tensor<f32>) -> tensor<892xf32>
  %q = stablehlo.pad %b, %f, low = [0], high = [0], interior = [1] : (tensor<100xi1>, tensor<i1>) -> tensor<199xi1>
  %c = stablehlo.concatenate %y, %y, dim = 1 : (tensor<50x6xf32>, tensor<50x6xf32>) -> tensor<50x12xf32>
  return %p, %q, %c : tensor<892xf32>, tensor<199xi1>, tensor<50x12xf32>
}

// -----

// A few columns side by side are parts of their own: vectors of each are dealt into rows later.
// CHECK-LABEL: func.func @columns
// CHECK: stablehlo.slice %arg0 [0:50, 0:1]
// CHECK: tensor.insert_slice {{.*}}[0, 0] [50, 1]
// CHECK: stablehlo.slice %arg0 [0:50, 1:2]
// CHECK: tensor.insert_slice {{.*}}[0, 1] [50, 1]
// CHECK: tensor.insert_slice %arg1 into {{.*}}[0, 2] [50, 1]
func.func @columns(%x: tensor<50x2xf32>, %y: tensor<50x1xf32>) -> tensor<50x3xf32> {
  %0 = stablehlo.concatenate %x, %y, dim = 1 : (tensor<50x2xf32>, tensor<50x1xf32>) -> tensor<50x3xf32>
  return %0 : tensor<50x3xf32>
}

// -----

// What an op is told goes with its parts.
// CHECK-LABEL: func.func @compared
// CHECK-COUNT-2: stablehlo.compare{{ +}}EQ, {{.*}} -> tensor<{{2|3}}xi1>
func.func @compared(%a: tensor<2xi32>, %b: tensor<3xi32>, %c: tensor<5xi32>) -> tensor<5xi1> {
  %0 = stablehlo.concatenate %a, %b, dim = 0 : (tensor<2xi32>, tensor<3xi32>) -> tensor<5xi32>
  %1 = stablehlo.compare EQ, %0, %c : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
  return %1 : tensor<5xi1>
}

// -----

// Parts that are put together themselves have boundaries at the same places of the whole.
// CHECK-LABEL: func.func @twice
// CHECK-NOT: stablehlo.concatenate
// CHECK-DAG: tensor.insert_slice {{.*}}[0, 0] [4, 8]
// CHECK-DAG: tensor.insert_slice {{.*}}[4, 0] [6, 8]
// CHECK-DAG: tensor.insert_slice {{.*}}[0, 8] [4, 9]
// CHECK-DAG: tensor.insert_slice {{.*}}[4, 8] [6, 9]
// CHECK: return
func.func @twice(%a: tensor<4x8xf32>, %b: tensor<6x8xf32>, %c: tensor<10x9xf32>) -> tensor<10x17xf32> {
  %0 = stablehlo.concatenate %a, %b, dim = 0 : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<10x8xf32>
  %1 = stablehlo.negate %0 : tensor<10x8xf32>
  %2 = stablehlo.concatenate %1, %c, dim = 1 : (tensor<10x8xf32>, tensor<10x9xf32>) -> tensor<10x17xf32>
  return %2 : tensor<10x17xf32>
}

// -----

// 3 ** 5 boxes would each be a loop nest.
// CHECK-LABEL: func.func @padded_in_five_dimensions
// CHECK: stablehlo.pad
// CHECK-NOT: tensor.insert_slice
func.func @padded_in_five_dimensions(%x: tensor<4x5x6x7x8xf32>) -> tensor<6x7x8x9x10xf32> {
  %z = stablehlo.constant dense<1.0> : tensor<f32>
  %p = stablehlo.pad %x, %z, low = [1, 1, 1, 1, 1], high = [1, 1, 1, 1, 1], interior = [0, 0, 0, 0, 0] : (tensor<4x5x6x7x8xf32>, tensor<f32>) -> tensor<6x7x8x9x10xf32>
  return %p : tensor<6x7x8x9x10xf32>
}

// -----

// Rows that are rotated are looked up where columns are cut: three parts, not nine. Alone they are cut.
// CHECK-LABEL: func.func @rotated
// CHECK-DAG: stablehlo.constant dense<{{\[}}[3], [0], [1], [2]]> : tensor<4x1xi32>
// CHECK-DAG: tensor.insert_slice {{.*}}[0, 0] [4, 1]
// CHECK-DAG: tensor.insert_slice {{.*}}[0, 1] [4, 39]
// CHECK-NOT: tensor.insert_slice
// CHECK: return
func.func @rotated(%x: tensor<4x40xf32>) -> tensor<4x40xf32> {
  %0 = stablehlo.slice %x [3:4, 0:40] : (tensor<4x40xf32>) -> tensor<1x40xf32>
  %1 = stablehlo.slice %x [0:3, 0:40] : (tensor<4x40xf32>) -> tensor<3x40xf32>
  %rows = stablehlo.concatenate %0, %1, dim = 0 : (tensor<1x40xf32>, tensor<3x40xf32>) -> tensor<4x40xf32>
  %2 = stablehlo.slice %x [0:4, 39:40] : (tensor<4x40xf32>) -> tensor<4x1xf32>
  %3 = stablehlo.slice %x [0:4, 0:39] : (tensor<4x40xf32>) -> tensor<4x39xf32>
  %columns = stablehlo.concatenate %2, %3, dim = 1 : (tensor<4x1xf32>, tensor<4x39xf32>) -> tensor<4x40xf32>
  %sum = stablehlo.add %rows, %columns : tensor<4x40xf32>
  return %sum : tensor<4x40xf32>
}

// -----

// CHECK-LABEL: func.func @rotated_alone
// CHECK-NOT: stablehlo.gather
// CHECK-COUNT-2: tensor.insert_slice
// CHECK: return
func.func @rotated_alone(%x: tensor<4x40xf32>) -> tensor<4x40xf32> {
  %0 = stablehlo.slice %x [3:4, 0:40] : (tensor<4x40xf32>) -> tensor<1x40xf32>
  %1 = stablehlo.slice %x [0:3, 0:40] : (tensor<4x40xf32>) -> tensor<3x40xf32>
  %rows = stablehlo.concatenate %0, %1, dim = 0 : (tensor<1x40xf32>, tensor<3x40xf32>) -> tensor<4x40xf32>
  %sum = stablehlo.add %rows, %x : tensor<4x40xf32>
  return %sum : tensor<4x40xf32>
}
