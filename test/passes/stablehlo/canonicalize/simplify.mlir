// RUN: %lamina-opt %s --stablehlo-simplify --stablehlo-cse --stablehlo-dce | FileCheck %s

// Float identities that hold for every value.
// CHECK-LABEL: func.func @float_identities
func.func @float_identities(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %one = stablehlo.constant dense<1.0> : tensor<4xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<4xf32>
  %minus_zero = stablehlo.constant dense<-0.0> : tensor<4xf32>
  // CHECK-NEXT: return %arg0, %arg0, %arg0, %arg0
  %0 = stablehlo.multiply %x, %one : tensor<4xf32>
  %1 = stablehlo.add %x, %minus_zero : tensor<4xf32>
  %2 = stablehlo.subtract %x, %zero : tensor<4xf32>
  %3 = stablehlo.divide %x, %one : tensor<4xf32>
  return %0, %1, %2, %3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -0 + 0 is 0, -0 - -0 is 0, NaN * 0 and NaN - NaN are NaN, NaN is not equal to itself.
// CHECK-LABEL: func.func @left_alone
func.func @left_alone(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi1>) {
  %zero = stablehlo.constant dense<0.0> : tensor<4xf32>
  %minus_zero = stablehlo.constant dense<-0.0> : tensor<4xf32>
  // CHECK: stablehlo.add
  // CHECK: stablehlo.subtract
  // CHECK: stablehlo.multiply
  // CHECK: stablehlo.subtract
  // CHECK: stablehlo.compare
  %0 = stablehlo.add %x, %zero : tensor<4xf32>
  %1 = stablehlo.subtract %x, %minus_zero : tensor<4xf32>
  %2 = stablehlo.multiply %x, %zero : tensor<4xf32>
  %3 = stablehlo.subtract %x, %x : tensor<4xf32>
  %4 = stablehlo.compare EQ, %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  return %0, %1, %2, %3, %4 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi1>
}

// CHECK-LABEL: func.func @integers
func.func @integers(%x: tensor<4xi32>) -> (tensor<4xi32>, tensor<4xi32>, tensor<4xi1>, tensor<4xi32>) {
  %zero = stablehlo.constant dense<0> : tensor<4xi32>
  %ones = stablehlo.constant dense<-1> : tensor<4xi32>
  // CHECK-DAG: %[[ZERO:.*]] = stablehlo.constant dense<0> : tensor<4xi32>
  // CHECK-DAG: %[[TRUE:.*]] = stablehlo.constant dense<true> : tensor<4xi1>
  // CHECK: return %[[ZERO]], %[[ZERO]], %[[TRUE]], %arg0
  %0 = stablehlo.multiply %zero, %x : tensor<4xi32>
  %1 = stablehlo.subtract %x, %x : tensor<4xi32>
  %2 = stablehlo.compare GE, %x, %x : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
  %3 = stablehlo.and %x, %ones : tensor<4xi32>
  return %0, %1, %2, %3 : tensor<4xi32>, tensor<4xi32>, tensor<4xi1>, tensor<4xi32>
}

// CHECK-LABEL: func.func @signs
func.func @signs(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %minus_one = stablehlo.constant dense<-1.0> : tensor<4xf32>
  %0 = stablehlo.negate %y : tensor<4xf32>
  // CHECK: %[[NEG:.*]] = stablehlo.negate %arg0
  // CHECK: %[[SUB:.*]] = stablehlo.subtract %arg0, %arg1
  // CHECK: %[[ADD:.*]] = stablehlo.add %arg0, %arg1
  // CHECK: return %[[NEG]], %[[SUB]], %[[ADD]], %arg1
  %1 = stablehlo.multiply %x, %minus_one : tensor<4xf32>
  %2 = stablehlo.add %x, %0 : tensor<4xf32>
  %3 = stablehlo.subtract %x, %0 : tensor<4xf32>
  %4 = stablehlo.negate %0 : tensor<4xf32>
  return %1, %2, %3, %4 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// A quotient by 8 is a product; by 3, or by what has no normal reciprocal, it is not.
// CHECK-LABEL: func.func @quotients
func.func @quotients(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %eight = stablehlo.constant dense<8.0> : tensor<4xf32>
  %three = stablehlo.constant dense<3.0> : tensor<4xf32>
  %huge = stablehlo.constant dense<0x7F000000> : tensor<4xf32>
  // CHECK-DAG: %[[EIGHTH:.*]] = stablehlo.constant dense<1.250000e-01>
  // CHECK-DAG: stablehlo.multiply %arg0, %[[EIGHTH]]
  // CHECK-COUNT-2: stablehlo.divide
  %0 = stablehlo.divide %x, %eight : tensor<4xf32>
  %1 = stablehlo.divide %x, %three : tensor<4xf32>
  %2 = stablehlo.divide %x, %huge : tensor<4xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @powers
func.func @powers(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %two = stablehlo.constant dense<2.0> : tensor<4xf32>
  %three = stablehlo.constant dense<3.5> : tensor<4xf32>
  %half = stablehlo.constant dense<0.5> : tensor<4xf32>
  %minus_half = stablehlo.constant dense<-0.5> : tensor<4xf32>
  // CHECK: stablehlo.multiply %arg0, %arg0
  // CHECK: stablehlo.power
  %0 = stablehlo.power %x, %two : tensor<4xf32>
  %1 = stablehlo.power %x, %three : tensor<4xf32>
  // -0 becomes 0 first, and -inf has the root inf.
  // CHECK: %[[IS:.*]] = stablehlo.compare EQ, %arg0
  // CHECK: %[[POSITIVE:.*]] = stablehlo.add %arg0
  // CHECK: %[[ROOT:.*]] = stablehlo.sqrt %[[POSITIVE]]
  // CHECK: stablehlo.select %[[IS]], %{{.*}}, %[[ROOT]]
  %2 = stablehlo.power %x, %half : tensor<4xf32>
  // CHECK: stablehlo.rsqrt
  %3 = stablehlo.power %x, %minus_half : tensor<4xf32>
  return %0, %1, %2, %3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @choices
func.func @choices(%p: tensor<4xi1>, %x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi1>) {
  %true = stablehlo.constant dense<true> : tensor<4xi1>
  %false = stablehlo.constant dense<false> : tensor<4xi1>
  %not = stablehlo.not %p : tensor<4xi1>
  // CHECK: %[[SWAPPED:.*]] = stablehlo.select %arg0, %arg2, %arg1
  // CHECK: return %arg1, %arg1, %[[SWAPPED]], %arg0
  %0 = stablehlo.select %p, %x, %x : tensor<4xi1>, tensor<4xf32>
  %1 = stablehlo.select %true, %x, %y : tensor<4xi1>, tensor<4xf32>
  %2 = stablehlo.select %not, %x, %y : tensor<4xi1>, tensor<4xf32>
  %3 = stablehlo.select %p, %true, %false : tensor<4xi1>, tensor<4xi1>
  return %0, %1, %2, %3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi1>
}

// Converting there and back is nothing if the way there keeps every value.
// CHECK-LABEL: func.func @converts
func.func @converts(%b: tensor<4xbf16>, %f: tensor<4xf32>, %i: tensor<4xi8>) -> (tensor<4xbf16>, tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.convert %b : (tensor<4xbf16>) -> tensor<4xf32>
  %1 = stablehlo.convert %0 : (tensor<4xf32>) -> tensor<4xbf16>
  // CHECK: stablehlo.convert %arg1 : (tensor<4xf32>) -> tensor<4xbf16>
  // CHECK: %[[BACK:.*]] = stablehlo.convert {{.*}} -> tensor<4xf32>
  // CHECK: %[[ONCE:.*]] = stablehlo.convert %arg2 : (tensor<4xi8>) -> tensor<4xf32>
  // CHECK: return %arg0, %[[BACK]], %[[ONCE]]
  %2 = stablehlo.convert %f : (tensor<4xf32>) -> tensor<4xbf16>
  %3 = stablehlo.convert %2 : (tensor<4xbf16>) -> tensor<4xf32>
  %4 = stablehlo.convert %i : (tensor<4xi8>) -> tensor<4xi32>
  %5 = stablehlo.convert %4 : (tensor<4xi32>) -> tensor<4xf32>
  return %1, %3, %5 : tensor<4xbf16>, tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @movement
func.func @movement(%x: tensor<2x3xf32>, %v: tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3x2xf32>, tensor<6xf32>, tensor<2x3xf32>, tensor<1x1xf32>) {
  %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %0 = stablehlo.transpose %t, dims = [1, 0] : (tensor<3x2xf32>) -> tensor<2x3xf32>
  // CHECK: %[[T:.*]] = stablehlo.broadcast_in_dim %arg1, dims = [0] : (tensor<3xf32>) -> tensor<3x2xf32>
  %b = stablehlo.broadcast_in_dim %v, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
  %1 = stablehlo.transpose %b, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  // CHECK: %[[FLAT:.*]] = stablehlo.reshape %arg0 : (tensor<2x3xf32>) -> tensor<6xf32>
  %r = stablehlo.reshape %x : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %2 = stablehlo.reshape %r : (tensor<3x2xf32>) -> tensor<6xf32>
  // CHECK: %[[ROWS:.*]] = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
  %row = stablehlo.reshape %v : (tensor<3xf32>) -> tensor<1x3xf32>
  %3 = stablehlo.broadcast_in_dim %row, dims = [0, 1] : (tensor<1x3xf32>) -> tensor<2x3xf32>
  // CHECK: %[[ONE:.*]] = stablehlo.slice %arg0 [1:2, 2:3]
  %s = stablehlo.slice %x [1:2, 0:3] : (tensor<2x3xf32>) -> tensor<1x3xf32>
  %4 = stablehlo.slice %s [0:1, 2:3] : (tensor<1x3xf32>) -> tensor<1x1xf32>
  // CHECK: return %arg0, %[[T]], %[[FLAT]], %[[ROWS]], %[[ONE]]
  return %0, %1, %2, %3, %4 : tensor<2x3xf32>, tensor<3x2xf32>, tensor<6xf32>, tensor<2x3xf32>, tensor<1x1xf32>
}

// CHECK-LABEL: func.func @slices_of_parts
func.func @slices_of_parts(%x: tensor<3xf32>, %y: tensor<5xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %0 = stablehlo.concatenate %x, %y, dim = 0 : (tensor<3xf32>, tensor<5xf32>) -> tensor<8xf32>
  // CHECK: stablehlo.slice %arg1 [1:3]
  // CHECK: stablehlo.slice %{{.*}} [2:4] : (tensor<8xf32>)
  %1 = stablehlo.slice %0 [4:6] : (tensor<8xf32>) -> tensor<2xf32>
  %2 = stablehlo.slice %0 [2:4] : (tensor<8xf32>) -> tensor<2xf32>
  return %1, %2 : tensor<2xf32>, tensor<2xf32>
}

// Constant starts are clamped into range, as the op does.
// CHECK-LABEL: func.func @dynamic_slice
func.func @dynamic_slice(%x: tensor<8xf32>, %i: tensor<i32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %c = stablehlo.constant dense<7> : tensor<i32>
  // CHECK: stablehlo.slice %arg0 [5:8]
  // CHECK: stablehlo.dynamic_slice %arg0, %arg1
  %0 = stablehlo.dynamic_slice %x, %c, sizes = [3] : (tensor<8xf32>, tensor<i32>) -> tensor<3xf32>
  %1 = stablehlo.dynamic_slice %x, %i, sizes = [3] : (tensor<8xf32>, tensor<i32>) -> tensor<3xf32>
  return %0, %1 : tensor<3xf32>, tensor<3xf32>
}

// A contraction reads a transposed operand where it lies; b^T a^T is (a b)^T.
// CHECK-LABEL: func.func @contractions
func.func @contractions(%x: tensor<4x8xf32>, %y: tensor<4x5xf32>) -> (tensor<8x5xf32>, tensor<5x8xf32>) {
  %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  // CHECK: stablehlo.dot_general %arg0, %arg1, contracting_dims = [0] x [0]
  // CHECK: stablehlo.dot_general %arg1, %arg0, contracting_dims = [0] x [0]
  %0 = stablehlo.dot_general %t, %y, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x5xf32>) -> tensor<8x5xf32>
  %1 = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0] : (tensor<4x8xf32>, tensor<4x5xf32>) -> tensor<8x5xf32>
  %2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<8x5xf32>) -> tensor<5x8xf32>
  return %0, %2 : tensor<8x5xf32>, tensor<5x8xf32>
}

// Reshapes move down past element-wise ops, into the broadcast.
// CHECK-LABEL: func.func @kept_dimensions
func.func @kept_dimensions(%x: tensor<8xf32>) -> tensor<8x4xf32> {
  // CHECK-NEXT: %[[L:.*]] = stablehlo.log %arg0 : tensor<8xf32>
  // CHECK-NEXT: stablehlo.broadcast_in_dim %[[L]], dims = [0] : (tensor<8xf32>) -> tensor<8x4xf32>
  %0 = stablehlo.reshape %x : (tensor<8xf32>) -> tensor<8x1xf32>
  %1 = stablehlo.log %0 : tensor<8x1xf32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<8x1xf32>) -> tensor<8x4xf32>
  return %2 : tensor<8x4xf32>
}

// Not where the new shape meets another array of it: one kernel can do both ops as they are.
// CHECK-LABEL: func.func @reshape_stays
func.func @reshape_stays(%x: tensor<8xf32>, %y: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // CHECK-NEXT: stablehlo.reshape
  // CHECK-NEXT: stablehlo.log %{{.*}} : tensor<2x4xf32>
  %0 = stablehlo.reshape %x : (tensor<8xf32>) -> tensor<2x4xf32>
  %1 = stablehlo.log %0 : tensor<2x4xf32>
  %2 = stablehlo.add %1, %y : tensor<2x4xf32>
  return %2 : tensor<2x4xf32>
}

// A reduction over a dimension of 1 is a reshape.
// CHECK-LABEL: func.func @reduction_of_one
func.func @reduction_of_one(%x: tensor<8x1xf32>) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  // CHECK-NEXT: stablehlo.reshape %arg0 : (tensor<8x1xf32>) -> tensor<8xf32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x1xf32>, tensor<f32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// CHECK-LABEL: func.func @known_branches
func.func @known_branches(%x: tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>) {
  %true = stablehlo.constant dense<true> : tensor<i1>
  %nine = stablehlo.constant dense<9> : tensor<i32>
  // CHECK-NOT: stablehlo.if
  // CHECK-NOT: stablehlo.case
  // CHECK-NOT: stablehlo.while
  // CHECK: %[[SIN:.*]] = stablehlo.sine %arg0
  // CHECK: %[[COS:.*]] = stablehlo.cosine %arg0
  // CHECK: return %[[SIN]], %[[COS]], %arg0
  %0 = "stablehlo.if"(%true) ({
    %s = stablehlo.sine %x : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }, {
    stablehlo.return %x : tensor<f32>
  }) : (tensor<i1>) -> tensor<f32>
  %1 = "stablehlo.case"(%nine) ({
    stablehlo.return %x : tensor<f32>
  }, {
    %c = stablehlo.cosine %x : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) : (tensor<i32>) -> tensor<f32>
  %2 = stablehlo.while(%a = %x) : tensor<f32> cond {
    %false = stablehlo.constant dense<false> : tensor<i1>
    stablehlo.return %false : tensor<i1>
  } do {
    %n = stablehlo.negate %a : tensor<f32>
    stablehlo.return %n : tensor<f32>
  }
  return %0, %1, %2 : tensor<f32>, tensor<f32>, tensor<f32>
}

// The sign of what a rectified value was made of is the sign of the value.
// CHECK-LABEL: func.func @rectified
func.func @rectified(%x: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<4xf32>
  // CHECK: %[[S:.*]] = stablehlo.sine %arg0
  // CHECK: %[[M:.*]] = stablehlo.maximum %[[S]]
  // CHECK: stablehlo.compare GT, %[[M]]
  %0 = stablehlo.sine %x : tensor<4xf32>
  %1 = stablehlo.maximum %0, %zero : tensor<4xf32>
  %2 = stablehlo.compare GT, %0, %zero : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %3 = stablehlo.select %2, %g, %zero : tensor<4xi1>, tensor<4xf32>
  return %1, %3 : tensor<4xf32>, tensor<4xf32>
}

// Of pairs of indices that number rows in order the first is no index: the rows are a batch dimension.
// CHECK-LABEL: func.func @numbered_rows
// CHECK-NOT: concatenate
// CHECK: "stablehlo.gather"(%arg0, %{{.*}}) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 1>
// CHECK: "stablehlo.scatter"(%arg0, %{{.*}}, %arg2) <{{.*}}inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>
func.func @numbered_rows(%x: tensor<4x9xf32>, %l: tensor<4xi32>, %u: tensor<4xf32>) -> (tensor<4xf32>, tensor<4x9xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<4xi32>
  %four = stablehlo.constant dense<4> : tensor<4xi32>
  %n = stablehlo.iota dim = 0 : tensor<4xi32>
  %is_negative = stablehlo.compare LT, %n, %zero : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
  %more = stablehlo.add %n, %four : tensor<4xi32>
  %m = stablehlo.select %is_negative, %more, %n : tensor<4xi1>, tensor<4xi32>
  %a = stablehlo.reshape %m : (tensor<4xi32>) -> tensor<4x1xi32>
  %b = stablehlo.reshape %l : (tensor<4xi32>) -> tensor<4x1xi32>
  %i = stablehlo.concatenate %a, %b, dim = 1 : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x2xi32>
  %p = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1],
    start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}>
    : (tensor<4x9xf32>, tensor<4x2xi32>) -> tensor<4xf32>
  %s = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
    inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>}> ({
  ^bb0(%c: tensor<f32>, %d: tensor<f32>):
    stablehlo.return %d : tensor<f32>
  }) : (tensor<4x9xf32>, tensor<4x2xi32>, tensor<4xf32>) -> tensor<4x9xf32>
  return %p, %s : tensor<4xf32>, tensor<4x9xf32>
}

// Fewer rows than there are, and rows in another order, are indices.
// CHECK-LABEL: func.func @some_rows
// CHECK-COUNT-2: "stablehlo.gather"({{.*}}start_index_map = [0, 1]
func.func @some_rows(%x: tensor<4x9xf32>, %l: tensor<3x1xi32>, %r: tensor<4x1xi32>) -> (tensor<3xf32>, tensor<4xf32>) {
  %n = stablehlo.iota dim = 0 : tensor<3x1xi32>
  %i = stablehlo.concatenate %n, %l, dim = 1 : (tensor<3x1xi32>, tensor<3x1xi32>) -> tensor<3x2xi32>
  %p = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1],
    start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}>
    : (tensor<4x9xf32>, tensor<3x2xi32>) -> tensor<3xf32>
  %o = stablehlo.constant dense<[[1], [0], [2], [3]]> : tensor<4x1xi32>
  %j = stablehlo.concatenate %o, %r, dim = 1 : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x2xi32>
  %q = "stablehlo.gather"(%x, %j) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1],
    start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}>
    : (tensor<4x9xf32>, tensor<4x2xi32>) -> tensor<4xf32>
  return %p, %q : tensor<3xf32>, tensor<4xf32>
}

// Positions compared with what none of them reaches; a reduction of what was given a dimension of one.
// CHECK-LABEL: func.func @positions
// CHECK: %[[FALSE:.*]] = stablehlo.constant dense<false> : tensor<5xi1>
// CHECK: %[[TRUE:.*]] = stablehlo.constant dense<true> : tensor<5xi1>
// CHECK: %[[HERE:.*]] = stablehlo.compare EQ
// CHECK: return %[[FALSE]], %[[TRUE]], %[[HERE]]
func.func @positions() -> (tensor<5xi1>, tensor<5xi1>, tensor<5xi1>) {
  %n = stablehlo.iota dim = 0 : tensor<5xi32>
  %five = stablehlo.constant dense<5> : tensor<5xi32>
  %two = stablehlo.constant dense<2> : tensor<5xi32>
  %0 = stablehlo.compare EQ, %n, %five : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
  %1 = stablehlo.compare LT, %n, %five : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
  %2 = stablehlo.compare EQ, %n, %two : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
  return %0, %1, %2 : tensor<5xi1>, tensor<5xi1>, tensor<5xi1>
}

// CHECK-LABEL: func.func @sum_of_column
// CHECK-NOT: reshape
// CHECK: %[[E:.*]] = stablehlo.exponential %arg0 : tensor<5xf32>
// CHECK: stablehlo.reduce(%[[E]] init: %{{.*}}) applies stablehlo.add across dimensions = [0]
func.func @sum_of_column(%x: tensor<5xf32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %c = stablehlo.reshape %x : (tensor<5xf32>) -> tensor<5x1xf32>
  %e = stablehlo.exponential %c : tensor<5x1xf32>
  %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<5x1xf32>, tensor<f32>) -> tensor<f32>
  return %s : tensor<f32>
}

// What is spread along dimensions that stay is reduced before it is.
// CHECK-LABEL: func.func @sum_of_spread
// CHECK: %[[S:.*]] = stablehlo.reduce(%arg0 init: %{{.*}}) applies stablehlo.add across dimensions = [0] : (tensor<5xf32>, tensor<f32>) -> tensor<f32>
// CHECK: %[[A:.*]] = stablehlo.broadcast_in_dim %[[S]], dims = [] : (tensor<f32>) -> tensor<7xf32>
// CHECK: %[[W:.*]] = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<4xf32>) -> tensor<3x4xf32>
// CHECK: %[[M:.*]] = stablehlo.reduce(%[[W]] init: %{{.*}}) applies stablehlo.multiply across dimensions = [0] : (tensor<3x4xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK: %[[B:.*]] = stablehlo.broadcast_in_dim %[[M]], dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
// CHECK: return %[[A]], %[[B]]
func.func @sum_of_spread(%x: tensor<5xf32>, %y: tensor<4xf32>) -> (tensor<7xf32>, tensor<4x6xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %half = stablehlo.constant dense<0.5> : tensor<f32>
  %0 = stablehlo.broadcast_in_dim %x, dims = [0] : (tensor<5xf32>) -> tensor<5x7xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<5x7xf32>, tensor<f32>) -> tensor<7xf32>
  %2 = stablehlo.broadcast_in_dim %y, dims = [1] : (tensor<4xf32>) -> tensor<3x4x6xf32>
  %3 = stablehlo.reduce(%2 init: %half) applies stablehlo.multiply across dimensions = [0] : (tensor<3x4x6xf32>, tensor<f32>) -> tensor<4x6xf32>
  return %1, %3 : tensor<7xf32>, tensor<4x6xf32>
}

// An outer product in a loop stays one, for stablehlo-gather-products.
// CHECK-LABEL: func.func @product_of_step
// CHECK: stablehlo.dot_general
func.func @product_of_step(%x: tensor<5xf32>, %n: tensor<i32>) -> tensor<5x5xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<5x5xf32>
  %0:2 = stablehlo.while(%i = %n, %sum = %zero) : tensor<i32>, tensor<5x5xf32>
    cond {
      %c = stablehlo.constant dense<9> : tensor<i32>
      %1 = stablehlo.compare LT, %i, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %c = stablehlo.constant dense<1> : tensor<i32>
      %1 = stablehlo.add %i, %c : tensor<i32>
      %2 = stablehlo.dot_general %x, %x, contracting_dims = [] x [] : (tensor<5xf32>, tensor<5xf32>) -> tensor<5x5xf32>
      %3 = stablehlo.add %sum, %2 : tensor<5x5xf32>
      stablehlo.return %1, %3 : tensor<i32>, tensor<5x5xf32>
    }
  return %0#1 : tensor<5x5xf32>
}

// -----

// Upsampling along one axis and then another is one broadcast, and summing what came of it one reduction.
// CHECK-LABEL: func.func @upsampled
func.func @upsampled(%x: tensor<3x4xf32>) -> tensor<6x8xf32> {
  // CHECK-NEXT: %[[B:.*]] = stablehlo.broadcast_in_dim %arg0, dims = [0, 2] : (tensor<3x4xf32>) -> tensor<3x2x4x2xf32>
  // CHECK-NEXT: %[[R:.*]] = stablehlo.reshape %[[B]]
  // CHECK-NEXT: return %[[R]]
  %0 = stablehlo.broadcast_in_dim %x, dims = [0, 2] : (tensor<3x4xf32>) -> tensor<3x2x4xf32>
  %1 = stablehlo.reshape %0 : (tensor<3x2x4xf32>) -> tensor<6x4xf32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<6x4xf32>) -> tensor<6x4x2xf32>
  %3 = stablehlo.reshape %2 : (tensor<6x4x2xf32>) -> tensor<6x8xf32>
  return %3 : tensor<6x8xf32>
}

// -----

// A predicate beside arrays is no array of theirs before they were reshaped: that would be the op itself.
// CHECK-LABEL: func.func @predicate_of_one_element
// CHECK: %[[P:.*]] = stablehlo.reshape %{{.*}} : (tensor<1xi1>) -> tensor<i1>
// CHECK: stablehlo.select %[[P]], %{{.*}}, %{{.*}} : tensor<i1>, tensor<1xf32>
func.func @predicate_of_one_element(%p: tensor<1xi1>, %x: tensor<1xf32>) -> tensor<2xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<1xf32>
  %one = stablehlo.constant dense<1.0> : tensor<1xf32>
  %0 = stablehlo.reshape %p : (tensor<1xi1>) -> tensor<i1>
  %1 = stablehlo.select %0, %one, %zero : tensor<i1>, tensor<1xf32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<1xf32>) -> tensor<2xf32>
  return %2 : tensor<2xf32>
}

// Which dimensions are summed does not depend on how the others are counted.
// CHECK-LABEL: func.func @sum_of_reshaped
func.func @sum_of_reshaped(%x: tensor<3x2x4x2xf32>) -> tensor<6x4xf32> {
  // CHECK: %[[S:.*]] = stablehlo.reduce(%arg0 init: {{.*}}) applies stablehlo.add across dimensions = [3] : {{.*}} -> tensor<3x2x4xf32>
  // CHECK-NEXT: stablehlo.reshape %[[S]]
  %0 = stablehlo.reshape %x : (tensor<3x2x4x2xf32>) -> tensor<6x4x2xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%0 init: %z) applies stablehlo.add across dimensions = [2] : (tensor<6x4x2xf32>, tensor<f32>) -> tensor<6x4xf32>
  return %1 : tensor<6x4xf32>
}

// -----

// Rows of an array that positions make are made where they are read: those of an identity matrix are
// where the column is the row that was asked for, moved to the bounds.
// CHECK-LABEL: func.func @rows_of_identity
func.func @rows_of_identity(%p: tensor<3xi32>) -> tensor<3x4xf32> {
  // CHECK-DAG: %[[C:.*]] = stablehlo.clamp {{.*}}, %arg0, {{.*}}
  // CHECK-DAG: %[[B:.*]] = stablehlo.broadcast_in_dim %[[C]], dims = [0] : (tensor<3xi32>) -> tensor<3x4xi32>
  // CHECK-DAG: %[[I:.*]] = stablehlo.iota dim = 1 : tensor<3x4xi32>
  // CHECK: %[[E:.*]] = stablehlo.compare EQ, %[[B]], %[[I]]
  // CHECK-NEXT: stablehlo.convert %[[E]]
  // CHECK-NOT: stablehlo.gather
  %0 = stablehlo.iota dim = 0 : tensor<4x4xi32>
  %1 = stablehlo.iota dim = 1 : tensor<4x4xi32>
  %2 = stablehlo.compare EQ, %0, %1 : (tensor<4x4xi32>, tensor<4x4xi32>) -> tensor<4x4xi1>
  %3 = stablehlo.convert %2 : (tensor<4x4xi1>) -> tensor<4x4xf32>
  %4 = stablehlo.reshape %p : (tensor<3xi32>) -> tensor<3x1xi32>
  %5 = "stablehlo.gather"(%3, %4) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 4>}> : (tensor<4x4xf32>, tensor<3x1xi32>) -> tensor<3x4xf32>
  return %5 : tensor<3x4xf32>
}

// -----

// A step of a loop reads a slice of a small array put behind itself, and a large one around its end.
// CHECK-LABEL: func.func @rolled_in_a_loop
// CHECK: stablehlo.while
// CHECK: stablehlo.concatenate
// CHECK: stablehlo.dynamic_slice {{.*}} -> tensor<600xf32>
// CHECK: "stablehlo.gather"({{.*}} -> tensor<90000xf32>
func.func @rolled_in_a_loop(%x: tensor<600xf32>, %y: tensor<90000xf32>, %n: tensor<i32>) -> (tensor<600xf32>, tensor<90000xf32>) {
  %0:3 = stablehlo.while(%i = %n, %a = %x, %b = %y) : tensor<i32>, tensor<600xf32>, tensor<90000xf32>
    cond {
      %l = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %l : tensor<i1>
    } do {
      %1 = stablehlo.concatenate %a, %a, dim = 0 : (tensor<600xf32>, tensor<600xf32>) -> tensor<1200xf32>
      %2 = stablehlo.dynamic_slice %1, %i, sizes = [600] : (tensor<1200xf32>, tensor<i32>) -> tensor<600xf32>
      %3 = stablehlo.concatenate %b, %b, dim = 0 : (tensor<90000xf32>, tensor<90000xf32>) -> tensor<180000xf32>
      %4 = stablehlo.dynamic_slice %3, %i, sizes = [90000] : (tensor<180000xf32>, tensor<i32>) -> tensor<90000xf32>
      %5 = stablehlo.add %i, %i : tensor<i32>
      stablehlo.return %5, %2, %4 : tensor<i32>, tensor<600xf32>, tensor<90000xf32>
    }
  return %0#1, %0#2 : tensor<600xf32>, tensor<90000xf32>
}

// -----

// A rolled array is read around its end; a slice that is shorter is one of the array put together.
// CHECK-LABEL: func.func @rolled
// CHECK-NOT: stablehlo.concatenate
// CHECK: "stablehlo.gather"(%arg0,
// CHECK-LABEL: func.func @shorter
// CHECK: stablehlo.dynamic_slice
func.func @rolled(%x: tensor<5x6xf32>, %s: tensor<i32>) -> tensor<5x6xf32> {
  %z = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.concatenate %x, %x, dim = 1 : (tensor<5x6xf32>, tensor<5x6xf32>) -> tensor<5x12xf32>
  %1 = stablehlo.dynamic_slice %0, %z, %s, sizes = [5, 6] : (tensor<5x12xf32>, tensor<i32>, tensor<i32>) -> tensor<5x6xf32>
  return %1 : tensor<5x6xf32>
}
func.func @shorter(%x: tensor<5x6xf32>, %s: tensor<i32>) -> tensor<5x5xf32> {
  %z = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.concatenate %x, %x, dim = 1 : (tensor<5x6xf32>, tensor<5x6xf32>) -> tensor<5x12xf32>
  %1 = stablehlo.dynamic_slice %0, %z, %s, sizes = [5, 5] : (tensor<5x12xf32>, tensor<i32>, tensor<i32>) -> tensor<5x5xf32>
  return %1 : tensor<5x5xf32>
}

// CHECK-LABEL: func.func @least_of_one_number
// CHECK-NEXT: return %arg0
func.func @least_of_one_number(%x: tensor<ui32>) -> tensor<ui32> {
  %most = stablehlo.constant dense<4294967295> : tensor<ui32>
  %0 = stablehlo.reduce(%x init: %most) applies stablehlo.minimum across dimensions = [] : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
  return %0 : tensor<ui32>
}

// The sum of what is negated, with the sign of a zero that it has; not from -0, and not a maximum.
// CHECK-LABEL: func.func @sum_of_negated
// CHECK: %[[N:.*]] = stablehlo.negate %arg0
// CHECK: %[[S:.*]] = stablehlo.reduce(%arg0 init: %{{.*}}) applies stablehlo.add across dimensions = [1]
// CHECK: %[[D:.*]] = stablehlo.subtract %{{.*}}, %[[S]]
// CHECK: stablehlo.reduce(%[[N]]
// CHECK: stablehlo.reduce(%[[N]]
func.func @sum_of_negated(%x: tensor<8x16xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %minus = stablehlo.constant dense<-0.0> : tensor<f32>
  %n = stablehlo.negate %x : tensor<8x16xf32>
  %0 = stablehlo.reduce(%n init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x16xf32>, tensor<f32>) -> tensor<8xf32>
  %1 = stablehlo.reduce(%n init: %minus) applies stablehlo.add across dimensions = [1] : (tensor<8x16xf32>, tensor<f32>) -> tensor<8xf32>
  %2 = stablehlo.reduce(%n init: %zero) applies stablehlo.maximum across dimensions = [1] : (tensor<8x16xf32>, tensor<f32>) -> tensor<8xf32>
  return %0, %1, %2 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// Integers wrap around alike; floats round.
// CHECK-LABEL: func.func @constants_together
// CHECK-DAG: %[[C:.*]] = stablehlo.constant dense<125> : tensor<4xi8>
// CHECK-DAG: %[[Y:.*]] = stablehlo.add %arg0, %[[C]]
// CHECK-DAG: %[[M:.*]] = stablehlo.constant dense<-127> : tensor<4xi8>
// CHECK: %[[Z:.*]] = stablehlo.subtract %[[M]], %arg0
// CHECK: %[[W:.*]] = stablehlo.add %arg0, %[[M]]
// CHECK: stablehlo.add %arg1
// CHECK: stablehlo.subtract
// CHECK: return %arg0, %[[Y]], %[[Z]], %[[W]]
func.func @constants_together(%x: tensor<4xi8>, %y: tensor<4xf32>) -> (tensor<4xi8>, tensor<4xi8>, tensor<4xi8>, tensor<4xi8>, tensor<4xf32>) {
  %one = stablehlo.constant dense<1> : tensor<4xi8>
  %large = stablehlo.constant dense<127> : tensor<4xi8>
  %half = stablehlo.constant dense<0.5> : tensor<4xf32>
  %0 = stablehlo.add %x, %one : tensor<4xi8>
  %1 = stablehlo.subtract %0, %one : tensor<4xi8>
  %2 = stablehlo.add %x, %large : tensor<4xi8>
  %4 = stablehlo.add %2, %large : tensor<4xi8>
  %5 = stablehlo.add %4, %large : tensor<4xi8>
  %least = stablehlo.constant dense<-128> : tensor<4xi8>
  %6 = stablehlo.subtract %least, %x : tensor<4xi8>
  %7 = stablehlo.add %one, %6 : tensor<4xi8>
  %8 = stablehlo.subtract %one, %6 : tensor<4xi8>
  %19 = stablehlo.add %y, %half : tensor<4xf32>
  %20 = stablehlo.subtract %19, %half : tensor<4xf32>
  return %1, %5, %7, %8, %20 : tensor<4xi8>, tensor<4xi8>, tensor<4xi8>, tensor<4xi8>, tensor<4xf32>
}

// What is stacked and then turned is stacked along the other dimension; parts that are turned themselves stay.
// CHECK-LABEL: func.func @stacked
// CHECK-DAG: %[[X:.*]] = stablehlo.reshape %arg0 : (tensor<8xf32>) -> tensor<8x1xf32>
// CHECK-DAG: %[[Y:.*]] = stablehlo.reshape %arg1 : (tensor<8xf32>) -> tensor<8x1xf32>
// CHECK: %[[S:.*]] = stablehlo.concatenate %[[X]], %[[Y]], dim = 1
// CHECK: stablehlo.concatenate %arg2, %arg2, dim = 0
// CHECK: %[[T:.*]] = stablehlo.transpose
// CHECK: return %[[S]], %[[T]]
func.func @stacked(%x: tensor<8xf32>, %y: tensor<8xf32>, %z: tensor<2x8xf32>) -> (tensor<8x2xf32>, tensor<8x4xf32>) {
  %0 = stablehlo.reshape %x : (tensor<8xf32>) -> tensor<1x8xf32>
  %1 = stablehlo.reshape %y : (tensor<8xf32>) -> tensor<1x8xf32>
  %2 = stablehlo.concatenate %0, %1, dim = 0 : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<2x8xf32>
  %3 = stablehlo.transpose %2, dims = [1, 0] : (tensor<2x8xf32>) -> tensor<8x2xf32>
  %4 = stablehlo.concatenate %z, %z, dim = 0 : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<4x8xf32>
  %5 = stablehlo.transpose %4, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return %3, %5 : tensor<8x2xf32>, tensor<8x4xf32>
}

// Transposes meet past dimensions of 1 that are put in between them.
// CHECK-LABEL: func.func @past_ones
// CHECK-NEXT: return %arg0
func.func @past_ones(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %0 = stablehlo.transpose %x, dims = [0, 2, 1] : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
  %1 = stablehlo.reshape %0 : (tensor<2x4x3xf32>) -> tensor<2x4x3x1xf32>
  %2 = stablehlo.transpose %1, dims = [0, 2, 3, 1] : (tensor<2x4x3x1xf32>) -> tensor<2x3x1x4xf32>
  %3 = stablehlo.reshape %2 : (tensor<2x3x1x4xf32>) -> tensor<2x3x4xf32>
  return %3 : tensor<2x3x4xf32>
}

// Nothing is less than -inf, so that a maximum with it is NaN where the other is.
// CHECK-LABEL: func.func @of_nothing
// CHECK: %[[M:.*]] = stablehlo.minimum %arg0
// CHECK: return %arg0, %arg0, %arg1, %arg1, %[[M]]
func.func @of_nothing(%x: tensor<4xbf16>, %i: tensor<4xui8>) -> (tensor<4xbf16>, tensor<4xbf16>, tensor<4xui8>, tensor<4xui8>, tensor<4xbf16>) {
  %least = stablehlo.constant dense<0xFF80> : tensor<4xbf16>
  %most = stablehlo.constant dense<0x7F80> : tensor<4xbf16>
  %none = stablehlo.constant dense<0> : tensor<4xui8>
  %all = stablehlo.constant dense<255> : tensor<4xui8>
  %0 = stablehlo.maximum %least, %x : tensor<4xbf16>
  %1 = stablehlo.minimum %x, %most : tensor<4xbf16>
  %2 = stablehlo.maximum %i, %none : tensor<4xui8>
  %3 = stablehlo.minimum %all, %i : tensor<4xui8>
  %4 = stablehlo.minimum %x, %least : tensor<4xbf16>
  return %0, %1, %2, %3, %4 : tensor<4xbf16>, tensor<4xbf16>, tensor<4xui8>, tensor<4xui8>, tensor<4xbf16>
}
