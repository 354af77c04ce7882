// RUN: %lamina-opt %s --stablehlo-fuse --split-input-file | FileCheck %s
// RUN: %lamina-opt %s --pass-pipeline='stablehlo-fuse{matrix-products=kernel}' --split-input-file | FileCheck %s --check-prefix=OWN
// RUN: %lamina-opt %s --pass-pipeline='stablehlo-fuse{parts=false}' --split-input-file | FileCheck %s --check-prefix=APART

// A chain is one kernel; what its result may overwrite is marked.
// CHECK-LABEL: func.func @chain
func.func @chain(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK-NEXT: %[[R:.*]] = call @fused_add_0(%arg0, %arg1)
  // CHECK-NEXT: return %[[R]]
  %two = stablehlo.constant dense<2.0> : tensor<8xf32>
  %0 = stablehlo.multiply %x, %two : tensor<8xf32>
  %1 = stablehlo.exponential %0 : tensor<8xf32>
  %2 = stablehlo.add %1, %y : tensor<8xf32>
  return %2 : tensor<8xf32>
}
// CHECK: func.func private @fused_add_0(%arg0: tensor<8xf32> {lamina.may_alias = array<i64: 0>}, %arg1: tensor<8xf32> {lamina.may_alias = array<i64: 0>})
// CHECK-SAME: lamina.kind = "loop", lamina.reason = "elementwise chain of 3"
// CHECK-NEXT: stablehlo.constant
// CHECK-NEXT: stablehlo.multiply
// CHECK-NEXT: stablehlo.exponential
// CHECK-NEXT: stablehlo.add

// -----

// A costly op with two users in unrelated kernels is computed once, and stored by one of them.
// CHECK-LABEL: func.func @never_twice
func.func @never_twice(%x: tensor<2x8xf32>) -> (tensor<2xf32>, tensor<2x8xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  // CHECK-NEXT: %[[E:.*]]:2 = call @fused_reduce_0(%arg0) : (tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<2xf32>)
  // CHECK-NEXT: %[[T:.*]] = call @fused_divide_0({{.*}}) : (tensor<2xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  // CHECK-NEXT: return %[[E]]#1, %[[T]]
  %0 = stablehlo.exponential %x : tensor<2x8xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<2xf32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<2xf32>) -> tensor<2x8xf32>
  %3 = stablehlo.divide %0, %2 : tensor<2x8xf32>
  return %1, %3 : tensor<2xf32>, tensor<2x8xf32>
}
// CHECK: @fused_reduce_0{{.*}}lamina.kind = "input"{{.*}}1 reduction with 1 ops around
// CHECK-NEXT: stablehlo.exponential
// CHECK: @fused_divide_0
// CHECK-SAME: reduce: a reduction whose result is read at other indices
// CHECK-NOT: stablehlo.exponential

// -----

// A reduction and what reads its result along the same rows are one kernel, which stores nothing
// on the way. (Two rows, as above, would be no work to share out.)
// CHECK-LABEL: func.func @softmax
func.func @softmax(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  // CHECK-NEXT: %[[Y:.*]] = call @fused_reduce_0(%arg0) : (tensor<8x16xf32>) -> tensor<8x16xf32>
  // CHECK-NEXT: return %[[Y]]
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %least) applies stablehlo.maximum across dimensions = [1] : (tensor<8x16xf32>, tensor<f32>) -> tensor<8xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<8xf32>) -> tensor<8x16xf32>
  %2 = stablehlo.subtract %x, %1 : tensor<8x16xf32>
  %3 = stablehlo.exponential %2 : tensor<8x16xf32>
  %4 = stablehlo.reduce(%3 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x16xf32>, tensor<f32>) -> tensor<8xf32>
  %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<8xf32>) -> tensor<8x16xf32>
  %6 = stablehlo.divide %3, %5 : tensor<8x16xf32>
  return %6 : tensor<8x16xf32>
}
// CHECK: @fused_reduce_0{{.*}}lamina.kind = "rows", lamina.reason = "2 reductions along rows with 5 ops around"
// CHECK-COUNT-1: stablehlo.exponential
// CHECK-NOT: stablehlo.exponential

// -----

// What lies between two kernels keeps them apart.
// CHECK-LABEL: func.func @between
func.func @between(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // CHECK-NEXT: %[[S:.*]] = call @fused_reduce_0(%arg0)
  // CHECK-NEXT: %[[T:.*]] = call @fused_sort_0(%[[S]])
  // CHECK-NEXT: call @fused_{{.*}}%[[T]]
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
  %s = "stablehlo.sort"(%0) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %lt = stablehlo.compare LT, %l, %r : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %lt : tensor<i1>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<8xf32>) -> tensor<8x8xf32>
  %2 = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<8xf32>) -> tensor<8x8xf32>
  %3 = stablehlo.subtract %x, %1 : tensor<8x8xf32>
  %4 = stablehlo.multiply %3, %2 : tensor<8x8xf32>
  return %4 : tensor<8x8xf32>
}

// -----

// A costly op behind a broadcast would be computed again for each row.
// CHECK-LABEL: func.func @not_repeated
func.func @not_repeated(%v: tensor<8xf32>, %x: tensor<100x8xf32>) -> (tensor<100x8xf32>, tensor<100x8xf32>) {
  // CHECK-NEXT: call @fused_exponential_0(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  // CHECK-NEXT: call @fused_multiply_0
  // CHECK-NEXT: return
  %0 = stablehlo.exponential %v : tensor<8xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [1] : (tensor<8xf32>) -> tensor<100x8xf32>
  %2 = stablehlo.add %x, %1 : tensor<100x8xf32>
  %3 = stablehlo.multiply %x, %1 : tensor<100x8xf32>
  return %2, %3 : tensor<100x8xf32>, tensor<100x8xf32>
}
// CHECK: lamina.reason = "elementwise chain of 3; stopped at exponential: costly, and a broadcast would repeat it"

// -----

// @c would depend on itself through the sort if a and c were one kernel.
// CHECK-LABEL: func.func @no_cycle
func.func @no_cycle(%x: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK-NEXT: %[[A:.*]] = call @fused_exponential_0(%arg0)
  // CHECK-NEXT: %[[S:.*]] = call @fused_sort_0(%[[A]])
  // CHECK-NEXT: %[[C:.*]] = call @fused_add_0(
  // CHECK-NEXT: return %[[C]]
  %a = stablehlo.exponential %x : tensor<8xf32>
  %s = "stablehlo.sort"(%a) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %lt = stablehlo.compare LT, %l, %r : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %lt : tensor<i1>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  %c = stablehlo.add %a, %s : tensor<8xf32>
  return %c : tensor<8xf32>
}
// CHECK: @fused_sort_0{{.*}}lamina.kind = "output"

// -----

// Large products go to the library, small ones take what follows along.
// CHECK-LABEL: func.func @contractions
func.func @contractions(%x: tensor<64x64xf32>, %y: tensor<4x4xf32>) -> (tensor<64x64xf32>, tensor<4x4xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<4x4xf32>
  // CHECK-DAG: call @fused_dot_general_0(%arg0)
  // CHECK-DAG: call @fused_dot_general_1(%arg1)
  %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = stablehlo.dot_general %y, %y, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = stablehlo.maximum %1, %zero : tensor<4x4xf32>
  return %0, %2 : tensor<64x64xf32>, tensor<4x4xf32>
}
// CHECK-DAG: lamina.kind = "library", lamina.library = "lamina.product", lamina.reason = "lamina.product does 64x64 by 64x64"
// CHECK-DAG: lamina.kind = "output", lamina.reason = "dot_general with 1 ops after"

// -----

// What decides is measured, see gemm.py: a few rows read a large matrix with all cores, in code of ours;
// a right matrix that would have to be laid out for few rows is the library's.
// CHECK-LABEL: func.func @rows
func.func @rows(%x: tensor<4x512xf32>, %y: tensor<512x512xf32>) -> (tensor<4x512xf32>, tensor<4x512xf32>) {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<4x512xf32>, tensor<512x512xf32>) -> tensor<4x512xf32>
  %1 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [1] : (tensor<4x512xf32>, tensor<512x512xf32>) -> tensor<4x512xf32>
  return %0, %1 : tensor<4x512xf32>, tensor<4x512xf32>
}
// CHECK: func.func private @fused_dot_general_0{{.*}}lamina.kind = "output"
// CHECK: func.func private @fused_dot_general_1{{.*}}lamina.library = "openblas.gemm"

// -----

// Products of f64 of many rows and columns are calls of one function, unless much of what they take is what is around them.
// CHECK-LABEL: func.func @wide
func.func @wide(%x: tensor<600x100xf64>, %y: tensor<100x650xf64>) -> (tensor<600x650xf64>, tensor<600x650xf64>) {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<600x100xf64>, tensor<100x650xf64>) -> tensor<600x650xf64>
  %1 = stablehlo.negate %x : tensor<600x100xf64>
  %2 = stablehlo.dot_general %1, %y, contracting_dims = [1] x [0] : (tensor<600x100xf64>, tensor<100x650xf64>) -> tensor<600x650xf64>
  %3 = stablehlo.exponential %2 : tensor<600x650xf64>
  return %0, %3 : tensor<600x650xf64>, tensor<600x650xf64>
}
// CHECK: func.func private @fused_dot_general_0{{.*}}lamina.library = "lamina.product", lamina.reason = "lamina.product does 600x100 by 100x650"
// CHECK: lamina.kind = "output"

// -----

// One sum of products is a reduction of ours, of any length.
// CHECK-LABEL: func.func @dot
// CHECK: func.func private @fused_dot_general_0{{.*}}lamina.kind = "output"
func.func @dot(%x: tensor<100000xf32>, %y: tensor<100000xf32>) -> tensor<f32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0] : (tensor<100000xf32>, tensor<100000xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// Equal kernels exist once; updates happen in place, in a buffer of their own if it is a constant.
// CHECK-LABEL: func.func @updates
func.func @updates(%x: tensor<100xf32>, %u: tensor<2xf32>, %i: tensor<i32>, %j: tensor<i32>) -> (tensor<100xf32>, tensor<100xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<100xf32>
  // CHECK-DAG: %[[A:.*]] = call @fused_dynamic_update_slice_0(%arg0, %arg1, %arg2)
  // CHECK-DAG: %[[Z:.*]] = call @fused_broadcast_in_dim_0()
  // CHECK-DAG: %[[B:.*]] = call @fused_dynamic_update_slice_0(%[[Z]], %arg1, %arg3)
  // CHECK: return %[[A]], %[[B]]
  %0 = stablehlo.dynamic_update_slice %x, %u, %i : (tensor<100xf32>, tensor<2xf32>, tensor<i32>) -> tensor<100xf32>
  %1 = stablehlo.dynamic_update_slice %zero, %u, %j : (tensor<100xf32>, tensor<2xf32>, tensor<i32>) -> tensor<100xf32>
  return %0, %1 : tensor<100xf32>, tensor<100xf32>
}
// CHECK: func.func private @fused_dynamic_update_slice_0(%arg0: tensor<100xf32> {lamina.inout = 0 : i32}, %arg1: tensor<2xf32>, %arg2: tensor<i32>) -> tensor<100xf32>
// CHECK-SAME: lamina.kind = "update"
// CHECK-NOT: @fused_dynamic_update_slice_1

// -----

// Regions are treated like @main; reshapes, control flow and returned constants stay outside.
// CHECK-LABEL: func.func @regions
func.func @regions(%x: tensor<4xf32>, %n: tensor<i32>) -> (tensor<2x2xf32>, tensor<i32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  // CHECK-NEXT: %[[ZERO:.*]] = stablehlo.constant dense<0>
  // CHECK-NEXT: stablehlo.while
  // CHECK-NEXT: cond {
  // CHECK-NEXT: %[[P:.*]] = func.call @fused_compare_0
  // CHECK-NEXT: stablehlo.return %[[P]]
  // CHECK: do {
  // CHECK-NEXT: func.call @fused_
  // CHECK-NEXT: func.call @fused_
  // CHECK-NEXT: stablehlo.return
  // CHECK: stablehlo.reshape
  // CHECK-NEXT: return %{{.*}}, %[[ZERO]]
  %0:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<4xf32> cond {
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %j = stablehlo.add %i, %one : tensor<i32>
    %s = stablehlo.sine %a : tensor<4xf32>
    %t = stablehlo.add %s, %a : tensor<4xf32>
    stablehlo.return %j, %t : tensor<i32>, tensor<4xf32>
  }
  %1 = stablehlo.reshape %0#1 : (tensor<4xf32>) -> tensor<2x2xf32>
  return %1, %zero : tensor<2x2xf32>, tensor<i32>
}

// -----

// Effects keep their order and are never dropped.
// CHECK-LABEL: func.func @effects
func.func @effects(%x: tensor<4xf32>) {
  // CHECK-NEXT: %[[A:.*]] = call @fused_sine_0
  // CHECK-NEXT: call @fused_custom_call_0(%[[A]])
  // CHECK-NEXT: call @fused_custom_call_1(%arg0)
  // CHECK-NEXT: return
  %0 = stablehlo.sine %x : tensor<4xf32>
  stablehlo.custom_call @first(%0) {has_side_effect = true} : (tensor<4xf32>) -> ()
  stablehlo.custom_call @second(%x) {has_side_effect = true} : (tensor<4xf32>) -> ()
  return
}

// -----

// Sibling loops over one domain that read the same array become one.
// CHECK-LABEL: func.func @siblings
func.func @siblings(%x: tensor<100xf32>) -> (tensor<100xf32>, tensor<100xf32>) {
  // CHECK-NEXT: %[[R:.*]]:2 = call
  // CHECK-NEXT: return %[[R]]#0, %[[R]]#1
  %0 = stablehlo.sine %x : tensor<100xf32>
  %1 = stablehlo.cosine %x : tensor<100xf32>
  return %0, %1 : tensor<100xf32>, tensor<100xf32>
}

// -----

// A custom call is a library's work on memory: constants are in memory for it, too.
// CHECK-LABEL: func.func @library
// CHECK-NEXT: %[[C:.*]] = stablehlo.constant dense<1>
// CHECK-NEXT: call @fused_custom_call_0(%arg0, %[[C]])
// CHECK: func.func private @fused_custom_call_0(%arg0: tensor<4xf32>, %arg1: tensor<i32>)
// CHECK-SAME: lamina.kind = "library", lamina.library = "second"
func.func @library(%x: tensor<4xf32>) {
  %c = stablehlo.constant dense<1> : tensor<i32>
  stablehlo.custom_call @second(%x, %c) {has_side_effect = true} : (tensor<4xf32>, tensor<i32>) -> ()
  return
}

// -----

// What is read backwards is computed there, unless it is also read straight: then it is stored.
// CHECK-LABEL: func.func @backwards
// CHECK-NEXT: call @fused_reverse_0(%arg0)
// CHECK-NEXT: return
// CHECK-LABEL: func.func @both_ways
// CHECK-NEXT: %[[E:.*]] = call @fused_exponential_0(%arg0)
// CHECK-NEXT: call @fused_add_0(%[[E]])
func.func @backwards(%x: tensor<100x90xf32>) -> tensor<100x90xf32> {
  %0 = stablehlo.exponential %x : tensor<100x90xf32>
  %1 = stablehlo.reverse %0, dims = [1] : tensor<100x90xf32>
  return %1 : tensor<100x90xf32>
}
func.func @both_ways(%x: tensor<100x90xf32>) -> tensor<100x90xf32> {
  %0 = stablehlo.exponential %x : tensor<100x90xf32>
  %1 = stablehlo.reverse %0, dims = [1] : tensor<100x90xf32>
  %2 = stablehlo.add %0, %1 : tensor<100x90xf32>
  return %2 : tensor<100x90xf32>
}

// -----

// LAPACK may overwrite the right-hand sides of a system, not those that are also its matrix.
// CHECK-LABEL: func.func @solved
// CHECK: func.func private @fused_triangular_solve_0(%{{.*}}: tensor<40x40xf32>, %{{.*}}: tensor<40x7xf32> {lamina.may_alias = array<i64: 0>})
// CHECK: func.func private @fused_triangular_solve_1(%{{.*}}: tensor<40x40xf32>) -> tensor<40x40xf32> attributes
func.func @solved(%a: tensor<40x40xf32>, %b: tensor<40x7xf32>) -> (tensor<40x7xf32>, tensor<40x40xf32>) {
  %0 = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<40x40xf32>, tensor<40x7xf32>) -> tensor<40x7xf32>
  %1 = "stablehlo.triangular_solve"(%a, %a) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<40x40xf32>, tensor<40x40xf32>) -> tensor<40x40xf32>
  return %0, %1 : tensor<40x7xf32>, tensor<40x40xf32>
}

// -----

// A window of all that comes before that combines pairs as h -> a h + b is a recurrence, whose first
// result is then not wanted.
// CHECK-LABEL: func.func @recurrence
// CHECK: func.func private @fused_reduce_window_0{{.*}} -> tensor<3x100xf32> attributes {lamina.kind = "library", lamina.library = "lamina.recurrence", lamina.reason = "lamina.recurrence does reduce_window"}
func.func @recurrence(%a: tensor<3x100xf32>, %b: tensor<3x100xf32>) -> tensor<3x100xf32> {
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0:2 = "stablehlo.reduce_window"(%a, %b, %one, %zero) <{window_dimensions = array<i64: 1, 100>, padding = dense<[[0, 0], [99, 0]]> : tensor<2x2xi64>}> ({
  ^bb0(%a0: tensor<f32>, %b0: tensor<f32>, %a1: tensor<f32>, %b1: tensor<f32>):
    %p = stablehlo.multiply %a0, %a1 : tensor<f32>
    %q = stablehlo.multiply %b0, %a1 : tensor<f32>
    %s = stablehlo.add %b1, %q : tensor<f32>
    stablehlo.return %p, %s : tensor<f32>, tensor<f32>
  }) : (tensor<3x100xf32>, tensor<3x100xf32>, tensor<f32>, tensor<f32>) -> (tensor<3x100xf32>, tensor<3x100xf32>)
  return %0#1 : tensor<3x100xf32>
}

// -----

// The other way round, from other initial values or with both results it is a loop.
// CHECK-LABEL: func.func @from_the_right
// CHECK-NOT: lamina.library
func.func @from_the_right(%a: tensor<3x100xf32>, %b: tensor<3x100xf32>) -> tensor<3x100xf32> {
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0:2 = "stablehlo.reduce_window"(%a, %b, %one, %zero) <{window_dimensions = array<i64: 1, 100>, padding = dense<[[0, 0], [99, 0]]> : tensor<2x2xi64>}> ({
  ^bb0(%a0: tensor<f32>, %b0: tensor<f32>, %a1: tensor<f32>, %b1: tensor<f32>):
    %p = stablehlo.multiply %a0, %a1 : tensor<f32>
    %q = stablehlo.multiply %b1, %a0 : tensor<f32>
    %s = stablehlo.add %b0, %q : tensor<f32>
    stablehlo.return %p, %s : tensor<f32>, tensor<f32>
  }) : (tensor<3x100xf32>, tensor<3x100xf32>, tensor<f32>, tensor<f32>) -> (tensor<3x100xf32>, tensor<3x100xf32>)
  return %0#1 : tensor<3x100xf32>
}

// -----

// CHECK-LABEL: func.func @from_one
// CHECK-NOT: lamina.library
func.func @from_one(%a: tensor<3x100xf32>, %b: tensor<3x100xf32>) -> tensor<3x100xf32> {
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %zero = stablehlo.constant dense<1.0> : tensor<f32>
  %0:2 = "stablehlo.reduce_window"(%a, %b, %one, %zero) <{window_dimensions = array<i64: 1, 100>, padding = dense<[[0, 0], [99, 0]]> : tensor<2x2xi64>}> ({
  ^bb0(%a0: tensor<f32>, %b0: tensor<f32>, %a1: tensor<f32>, %b1: tensor<f32>):
    %p = stablehlo.multiply %a0, %a1 : tensor<f32>
    %q = stablehlo.multiply %b0, %a1 : tensor<f32>
    %s = stablehlo.add %b1, %q : tensor<f32>
    stablehlo.return %p, %s : tensor<f32>, tensor<f32>
  }) : (tensor<3x100xf32>, tensor<3x100xf32>, tensor<f32>, tensor<f32>) -> (tensor<3x100xf32>, tensor<3x100xf32>)
  return %0#1 : tensor<3x100xf32>
}

// -----

// CHECK-LABEL: func.func @with_products
// CHECK-NOT: lamina.library
func.func @with_products(%a: tensor<3x100xf32>, %b: tensor<3x100xf32>) -> (tensor<3x100xf32>, tensor<3x100xf32>) {
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0:2 = "stablehlo.reduce_window"(%a, %b, %one, %zero) <{window_dimensions = array<i64: 1, 100>, padding = dense<[[0, 0], [99, 0]]> : tensor<2x2xi64>}> ({
  ^bb0(%a0: tensor<f32>, %b0: tensor<f32>, %a1: tensor<f32>, %b1: tensor<f32>):
    %p = stablehlo.multiply %a0, %a1 : tensor<f32>
    %q = stablehlo.multiply %b0, %a1 : tensor<f32>
    %s = stablehlo.add %b1, %q : tensor<f32>
    stablehlo.return %p, %s : tensor<f32>, tensor<f32>
  }) : (tensor<3x100xf32>, tensor<3x100xf32>, tensor<f32>, tensor<f32>) -> (tensor<3x100xf32>, tensor<3x100xf32>)
  return %0#0, %0#1 : tensor<3x100xf32>, tensor<3x100xf32>
}

// -----

// A large product is a library's, or takes what follows it into its kernel.
// CHECK-LABEL: func.func @product
// CHECK: lamina.kind = "library", lamina.library = "openblas.gemm"
// OWN-LABEL: func.func @product
// OWN-NOT: library
// OWN: lamina.kind = "output", lamina.reason = "dot_general with 1 ops after"
func.func @product(%x: tensor<1024x1024xf32>, %y: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %1 = stablehlo.negate %0 : tensor<1024x1024xf32>
  return %1 : tensor<1024x1024xf32>
}

// -----

// The runtime finds the greatest elements of rows; of nothing there is nothing to find.
// CHECK-LABEL: func.func @greatest
// CHECK: func.func private @fused_top_k_0(%{{.*}}: tensor<4x90xbf16>) -> tensor<4x3xi32> attributes {lamina.kind = "library", lamina.library = "lamina.top_k", lamina.reason = "lamina.top_k finds 3 of 90 in each of 4 rows"}
// CHECK: func.func private @fused_top_k_1(%{{.*}}: tensor<4x0xbf16>) -> tensor<4x0xi32> attributes {lamina.kind = "output"
func.func @greatest(%x: tensor<4x90xbf16>, %y: tensor<4x0xbf16>) -> (tensor<4x3xi32>, tensor<4x0xi32>) {
  %v, %i = chlo.top_k(%x, k = 3) : tensor<4x90xbf16> -> (tensor<4x3xbf16>, tensor<4x3xi32>)
  %w, %j = chlo.top_k(%y, k = 0) : tensor<4x0xbf16> -> (tensor<4x0xbf16>, tensor<4x0xi32>)
  return %i, %j : tensor<4x3xi32>, tensor<4x0xi32>
}

// -----

// What is put together from parts is one kernel with what makes the parts and what follows.
// CHECK-LABEL: func.func @put_together
// CHECK-NEXT: %[[R:.*]] = call @fused_concatenate_0(%arg0, %arg1)
// CHECK-NEXT: return %[[R]]
// CHECK: func.func private @fused_concatenate_0
// CHECK-SAME: lamina.kind = "loop"
// APART-LABEL: func.func @put_together
// APART-COUNT-3: call @fused_
func.func @put_together(%x: tensor<100xf32>, %y: tensor<90xf32>) -> tensor<190xf32> {
  %0 = stablehlo.exponential %x : tensor<100xf32>
  %1 = stablehlo.concatenate %0, %y, dim = 0 : (tensor<100xf32>, tensor<90xf32>) -> tensor<190xf32>
  %2 = stablehlo.negate %1 : tensor<190xf32>
  return %2 : tensor<190xf32>
}

// -----

// What is put together from what is put together is one kernel; not where that is read turned.
// CHECK-LABEL: func.func @put_together_twice
// CHECK-NEXT: %[[R:.*]] = call @fused_concatenate_0(%arg0, %arg1)
// CHECK-NEXT: return %[[R]]
// CHECK-LABEL: func.func @put_together_and_turned
// CHECK-NEXT: call @fused_concatenate_
// CHECK-NEXT: call @fused_concatenate_
// CHECK-NEXT: return
// APART-LABEL: func.func @put_together_twice
// APART-COUNT-2: call @fused_
func.func @put_together_twice(%x: tensor<20x30xf32>, %y: tensor<10x30xf32>) -> tensor<30x50xf32> {
  %0 = stablehlo.concatenate %x, %y, dim = 0 : (tensor<20x30xf32>, tensor<10x30xf32>) -> tensor<30x30xf32>
  %1 = stablehlo.negate %0 : tensor<30x30xf32>
  %2 = stablehlo.slice %x [0:10, 0:20] : (tensor<20x30xf32>) -> tensor<10x20xf32>
  %3 = stablehlo.slice %x [0:20, 10:30] : (tensor<20x30xf32>) -> tensor<20x20xf32>
  %4 = stablehlo.concatenate %2, %3, dim = 0 : (tensor<10x20xf32>, tensor<20x20xf32>) -> tensor<30x20xf32>
  %5 = stablehlo.concatenate %1, %4, dim = 1 : (tensor<30x30xf32>, tensor<30x20xf32>) -> tensor<30x50xf32>
  return %5 : tensor<30x50xf32>
}
func.func @put_together_and_turned(%x: tensor<20x30xf32>, %y: tensor<10x30xf32>) -> tensor<30x60xf32> {
  %0 = stablehlo.concatenate %x, %y, dim = 0 : (tensor<20x30xf32>, tensor<10x30xf32>) -> tensor<30x30xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<30x30xf32>) -> tensor<30x30xf32>
  %2 = stablehlo.concatenate %1, %1, dim = 1 : (tensor<30x30xf32>, tensor<30x30xf32>) -> tensor<30x60xf32>
  return %2 : tensor<30x60xf32>
}

// -----

// Of a long sum of pads each kernel adds those that it can hold to the sum before it: none is put
// together in memory by itself.
// CHECK-LABEL: func.func @many_pads
// CHECK-NEXT: %[[A:.*]] = call @fused_pad_0(%arg0)
// CHECK-NEXT: %[[B:.*]] = call @fused_pad_1(%arg0, %[[A]])
// CHECK-NEXT: return %[[B]]
func.func @many_pads(%x: tensor<100x100xf32>) -> tensor<104x104xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.pad %x, %z, low = [0, 2], high = [4, 2], interior = [0, 0] : (tensor<100x100xf32>, tensor<f32>) -> tensor<104x104xf32>
  %1 = stablehlo.pad %x, %z, low = [4, 2], high = [0, 2], interior = [0, 0] : (tensor<100x100xf32>, tensor<f32>) -> tensor<104x104xf32>
  %2 = stablehlo.pad %x, %z, low = [2, 0], high = [2, 4], interior = [0, 0] : (tensor<100x100xf32>, tensor<f32>) -> tensor<104x104xf32>
  %3 = stablehlo.pad %x, %z, low = [2, 4], high = [2, 0], interior = [0, 0] : (tensor<100x100xf32>, tensor<f32>) -> tensor<104x104xf32>
  %4 = stablehlo.add %0, %1 : tensor<104x104xf32>
  %5 = stablehlo.add %4, %2 : tensor<104x104xf32>
  %6 = stablehlo.add %5, %3 : tensor<104x104xf32>
  return %6 : tensor<104x104xf32>
}

// -----

// What reads it in another order, or at indices that it computes, reads it from memory.
// CHECK-LABEL: func.func @put_together_before
// CHECK-NEXT: %[[P:.*]] = call @fused_pad_0(%arg0)
// CHECK-NEXT: %[[R:.*]]:2 = call @fused_{{.*}}(%[[P]])
// CHECK-NEXT: return %[[R]]#0, %[[R]]#1
func.func @put_together_before(%x: tensor<100xf32>) -> (tensor<102xf32>, tensor<102xf32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %p = stablehlo.pad %x, %z, low = [1], high = [1], interior = [0] : (tensor<100xf32>, tensor<f32>) -> tensor<102xf32>
  %r = stablehlo.reverse %p, dims = [0] : tensor<102xf32>
  %s = stablehlo.add %r, %p : tensor<102xf32>
  %t = stablehlo.exponential %r : tensor<102xf32>
  return %s, %t : tensor<102xf32>, tensor<102xf32>
}

// -----

// What the mean of the rows' losses is taken of is done with the rows: picked from where the row is in
// cache. What is read of that elsewhere comes from there.
// CHECK-LABEL: func.func @losses
// CHECK-NEXT: %[[R:.*]]:2 = call @fused_reduce_0(%arg1, %arg0)
// CHECK-NEXT: %[[M:.*]] = call @fused_reduce_1(%[[R]]#0)
// CHECK-NEXT: return %[[M]], %[[R]]#1
// CHECK: @fused_reduce_0{{.*}}lamina.kind = "rows"
// CHECK: "stablehlo.gather"
// CHECK: @fused_reduce_1
// CHECK-NOT: "stablehlo.gather"
func.func @losses(%x: tensor<8x100xf32>, %l: tensor<8xi32>) -> (tensor<f32>, tensor<8x100xf32>) {
  %lowest = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1> : tensor<8xi32>
  %i = stablehlo.add %l, %one : tensor<8xi32>
  %m = stablehlo.reduce(%x init: %lowest) applies stablehlo.maximum across dimensions = [1] : (tensor<8x100xf32>, tensor<f32>) -> tensor<8xf32>
  %p = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1],
    operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1],
    index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<8x100xf32>, tensor<8xi32>) -> tensor<8xf32>
  %d = stablehlo.subtract %p, %m : tensor<8xf32>
  %s = stablehlo.reduce(%d init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  %b = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<8xf32>) -> tensor<8x100xf32>
  %n = stablehlo.iota dim = 1 : tensor<8x100xi32>
  %j = stablehlo.broadcast_in_dim %i, dims = [0] : (tensor<8xi32>) -> tensor<8x100xi32>
  %is = stablehlo.compare EQ, %n, %j : (tensor<8x100xi32>, tensor<8x100xi32>) -> tensor<8x100xi1>
  %g = stablehlo.select %is, %x, %b : tensor<8x100xi1>, tensor<8x100xf32>
  return %s, %g : tensor<f32>, tensor<8x100xf32>
}

// -----

// A module may say who does all of them. What a library can't do stays a kernel.
// CHECK-LABEL: module attributes {lamina.matrix_products = "kernel"}
// CHECK: lamina.kind = "output", lamina.matrix_products = "kernel", lamina.reason = "dot_general with 1 ops after"
module attributes {lamina.matrix_products = "kernel"} {
  func.func @main(%x: tensor<1024x1024xf32>, %y: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
    %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
    %1 = stablehlo.negate %0 : tensor<1024x1024xf32>
    return %1 : tensor<1024x1024xf32>
  }
}

// -----

// CHECK-LABEL: module attributes {lamina.matrix_products = "library"}
// CHECK: lamina.kind = "library", lamina.library = "openblas.gemm", lamina.reason = "openblas.gemm does 8x8 by 8x8"
// CHECK: lamina.kind = "output", lamina.matrix_products = "library", lamina.reason = "dot_general alone"
// OWN-LABEL: module attributes {lamina.matrix_products = "library"}
// OWN-NOT: lamina.library
module attributes {lamina.matrix_products = "library"} {
  func.func @main(%x: tensor<8x8xf32>, %h: tensor<8x8xbf16>) -> (tensor<8x8xf32>, tensor<8x8xbf16>) {
    %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %1 = stablehlo.dot_general %h, %h, contracting_dims = [1] x [0] : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
    return %0, %1 : tensor<8x8xf32>, tensor<8x8xbf16>
  }
}

// -----

// Rows and columns of one array are reduced in one walk, and what makes it is done once. What also follows
// along the rows does so without the columns.
// CHECK-LABEL: func.func @both_ways
// CHECK-NEXT: call @fused_reduce_0(%arg0) : (tensor<64x256xf32>) -> (tensor<256xf32>, tensor<64xf32>)
// CHECK-NEXT: return
// CHECK: lamina.kind = "input", lamina.reason = "2 reductions over one domain with 1 ops around"
// CHECK-COUNT-1: stablehlo.exponential
func.func @both_ways(%x: tensor<64x256xf32>) -> (tensor<256xf32>, tensor<64xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.exponential %x : tensor<64x256xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<64x256xf32>, tensor<f32>) -> tensor<256xf32>
  %2 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<64x256xf32>, tensor<f32>) -> tensor<64xf32>
  return %1, %2 : tensor<256xf32>, tensor<64xf32>
}

// -----

// Rows and columns may be several dimensions.
// CHECK-LABEL: func.func @both_ways_of_several
// CHECK-NEXT: call @fused_reduce_0(%arg0) : (tensor<8x8x4x64xf32>) -> (tensor<4x64xf32>, tensor<8x8xf32>)
// CHECK-NEXT: return
func.func @both_ways_of_several(%x: tensor<8x8x4x64xf32>) -> (tensor<4x64xf32>, tensor<8x8xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x8x4x64xf32>, tensor<f32>) -> tensor<4x64xf32>
  %2 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [2, 3] : (tensor<8x8x4x64xf32>, tensor<f32>) -> tensor<8x8xf32>
  return %1, %2 : tensor<4x64xf32>, tensor<8x8xf32>
}

// -----

// A number for a part of the rows' dimensions keeps them apart.
// CHECK-LABEL: func.func @scaled_along_one
// CHECK: call @fused_{{.*}} -> (tensor<8x8x4x64xf32>, tensor<8x8xf32>)
// CHECK: call @fused_{{.*}} -> tensor<4x64xf32>
func.func @scaled_along_one(%x: tensor<8x8x4x64xf32>, %w: tensor<8xf32>) -> (tensor<4x64xf32>, tensor<8x8xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %b = stablehlo.broadcast_in_dim %w, dims = [1] : (tensor<8xf32>) -> tensor<8x8x4x64xf32>
  %0 = stablehlo.multiply %x, %b : tensor<8x8x4x64xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x8x4x64xf32>, tensor<f32>) -> tensor<4x64xf32>
  %2 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [2, 3] : (tensor<8x8x4x64xf32>, tensor<f32>) -> tensor<8x8xf32>
  return %1, %2 : tensor<4x64xf32>, tensor<8x8xf32>
}

// -----

// CHECK-LABEL: func.func @rows_apart
// CHECK: call @fused_{{.*}}(%arg0) : (tensor<64x256xf32>) -> tensor<256xf32>
// CHECK: call @fused_{{.*}}(%arg0) : (tensor<64x256xf32>) -> tensor<64x256xf32>
func.func @rows_apart(%x: tensor<64x256xf32>) -> (tensor<256xf32>, tensor<64x256xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<64x256xf32>, tensor<f32>) -> tensor<256xf32>
  %2 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<64x256xf32>, tensor<f32>) -> tensor<64xf32>
  %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<64xf32>) -> tensor<64x256xf32>
  %4 = stablehlo.divide %x, %3 : tensor<64x256xf32>
  return %1, %4 : tensor<256xf32>, tensor<64x256xf32>
}

// -----

// What is put together around a part of the first array at the place that it had in it may overwrite the
// array; the second is read at another place.
// CHECK-LABEL: func.func public @main(
// CHECK: func.func private @fused_concatenate_0(%{{.*}}: tensor<101xf32> {lamina.may_alias = array<i64: 0>}, %{{.*}}: tensor<101xf32>) ->
func.func public @main(%x: tensor<101xf32>, %y: tensor<101xf32>) -> tensor<101xf32> {
  %0 = stablehlo.slice %x [0:1] : (tensor<101xf32>) -> tensor<1xf32>
  %1 = stablehlo.slice %x [1:101] : (tensor<101xf32>) -> tensor<100xf32>
  %2 = stablehlo.slice %y [0:100] : (tensor<101xf32>) -> tensor<100xf32>
  %3 = stablehlo.add %1, %2 : tensor<100xf32>
  %4 = stablehlo.concatenate %0, %3, dim = 0 : (tensor<1xf32>, tensor<100xf32>) -> tensor<101xf32>
  return %4 : tensor<101xf32>
}

// -----

// One element of an array as a scalar is loaded where it is used, in each kernel that does; of an argument that has
// one element the scalar is a view.
// CHECK-LABEL: func.func public @main(
// CHECK-SAME: %[[KEY:.*]]: tensor<2xui32>, %[[ONE:.*]]: tensor<1xui32>
// CHECK: %[[VIEW:.*]] = stablehlo.reshape %[[ONE]] : (tensor<1xui32>) -> tensor<ui32>
// CHECK: call @fused_{{.*}}(%[[VIEW]], %[[KEY]]) : (tensor<ui32>, tensor<2xui32>) -> tensor<100xui32>
// CHECK-NOT: call
// CHECK: return
// CHECK: stablehlo.slice %{{.*}} [1:2]
// CHECK-NEXT: stablehlo.reshape
func.func public @main(%key: tensor<2xui32>, %one: tensor<1xui32>) -> tensor<100xui32> {
  %0 = stablehlo.slice %key [1:2] : (tensor<2xui32>) -> tensor<1xui32>
  %1 = stablehlo.reshape %0 : (tensor<1xui32>) -> tensor<ui32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<ui32>) -> tensor<100xui32>
  %3 = stablehlo.reshape %one : (tensor<1xui32>) -> tensor<ui32>
  %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<ui32>) -> tensor<100xui32>
  %5 = stablehlo.iota dim = 0 : tensor<100xui32>
  %6 = stablehlo.add %2, %5 : tensor<100xui32>
  %7 = stablehlo.xor %4, %6 : tensor<100xui32>
  return %7 : tensor<100xui32>
}
