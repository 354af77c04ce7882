// RUN: %lamina-opt %s --split-input-file --stablehlo-separate-lanes | FileCheck %s

// As JAX writes vmap of a while_loop: what no step changes is cut out of the whole arrays once, for each block.
// CHECK-LABEL: func.func @newton
// CHECK: stablehlo.while(%[[I:.*]] = %{{.*}}, %{{.*}} = %{{.*}}) : tensor<i32>, tensor<4096xf32> attributes {lamina.lanes = 64 : i64}
// CHECK: %[[FIRST:.*]] = stablehlo.multiply %[[I]]
// CHECK-DAG: %[[X:.*]] = stablehlo.dynamic_slice %arg0, %[[FIRST]], sizes = [64]
// CHECK-DAG: %[[N:.*]] = stablehlo.dynamic_slice %arg1, %[[FIRST]], sizes = [64]
// CHECK: %[[LOOP:.*]]:2 = stablehlo.while({{.*}}) : tensor<64xf32>, tensor<64xi32>
// CHECK: stablehlo.compare LT, %{{.*}}, %[[N]]
// CHECK: stablehlo.reduce
// CHECK: stablehlo.divide %[[X]]
// CHECK: stablehlo.select {{.*}} tensor<64xi1>, tensor<64xf32>
// CHECK: stablehlo.dynamic_update_slice %{{.*}}, %[[LOOP]]#0, %[[FIRST]]
// CHECK-NOT: stablehlo.while
func.func @newton(%x: tensor<4096xf32>, %count: tensor<4096xi32>) -> tensor<4096xf32> {
  %c = stablehlo.constant dense<0> : tensor<4096xi32>
  %0:4 = stablehlo.while(%n = %count, %a = %x, %y = %x, %k = %c) : tensor<4096xi32>, tensor<4096xf32>, tensor<4096xf32>, tensor<4096xi32>
    cond {
      %p = stablehlo.compare LT, %k, %n, SIGNED : (tensor<4096xi32>, tensor<4096xi32>) -> tensor<4096xi1>
      %f = stablehlo.constant dense<false> : tensor<i1>
      %any = stablehlo.reduce(%p init: %f) applies stablehlo.or across dimensions = [0] : (tensor<4096xi1>, tensor<i1>) -> tensor<i1>
      stablehlo.return %any : tensor<i1>
    } do {
      %q = stablehlo.divide %a, %y : tensor<4096xf32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %ones = stablehlo.broadcast_in_dim %one, dims = [] : (tensor<i32>) -> tensor<4096xi32>
      %next = stablehlo.add %k, %ones : tensor<4096xi32>
      %p = stablehlo.compare LT, %k, %n, SIGNED : (tensor<4096xi32>, tensor<4096xi32>) -> tensor<4096xi1>
      %y1 = stablehlo.select %p, %q, %y : tensor<4096xi1>, tensor<4096xf32>
      %k1 = stablehlo.select %p, %next, %k : tensor<4096xi1>, tensor<4096xi32>
      stablehlo.return %n, %a, %y1, %k1 : tensor<4096xi32>, tensor<4096xf32>, tensor<4096xf32>, tensor<4096xi32>
    }
  return %0#2 : tensor<4096xf32>
}

// -----

// Lanes of more than a few elements go one by one: what a lane has not stopped for, it does. They read a table whole.
// CHECK-LABEL: func.func @walk
// CHECK: stablehlo.while({{.*}}) : tensor<i32>, tensor<100x8xf32> attributes {lamina.lanes = 100 : i64}
// CHECK: stablehlo.dynamic_slice %arg0, %{{.*}}, sizes = [1, 8]
// CHECK: stablehlo.while({{.*}}) : tensor<1x8xf32>
// CHECK: "stablehlo.gather"(%arg1, %{{.*}} slice_sizes = array<i64: 1, 8>}> : (tensor<50x8xf32>, tensor<1x1xi32>) -> tensor<1x8xf32>
// CHECK-NOT: stablehlo.select
// CHECK: return
func.func @walk(%x: tensor<100x8xf32>, %table: tensor<50x8xf32>) -> tensor<100x8xf32> {
  %0 = stablehlo.while(%a = %x) : tensor<100x8xf32>
    cond {
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %s = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1] : (tensor<100x8xf32>, tensor<f32>) -> tensor<100xf32>
      %limit = stablehlo.constant dense<9.0> : tensor<100xf32>
      %p = stablehlo.compare LT, %s, %limit : (tensor<100xf32>, tensor<100xf32>) -> tensor<100xi1>
      %f = stablehlo.constant dense<false> : tensor<i1>
      %any = stablehlo.reduce(%p init: %f) applies stablehlo.or across dimensions = [0] : (tensor<100xi1>, tensor<i1>) -> tensor<i1>
      stablehlo.return %any : tensor<i1>
    } do {
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %s = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1] : (tensor<100x8xf32>, tensor<f32>) -> tensor<100xf32>
      %limit = stablehlo.constant dense<9.0> : tensor<100xf32>
      %p = stablehlo.compare LT, %s, %limit : (tensor<100xf32>, tensor<100xf32>) -> tensor<100xi1>
      %i = stablehlo.convert %s : (tensor<100xf32>) -> tensor<100xi32>
      %j = stablehlo.reshape %i : (tensor<100xi32>) -> tensor<100x1xi32>
      %row = "stablehlo.gather"(%table, %j) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 8>}> : (tensor<50x8xf32>, tensor<100x1xi32>) -> tensor<100x8xf32>
      %b = stablehlo.add %a, %row : tensor<100x8xf32>
      %q = stablehlo.broadcast_in_dim %p, dims = [0] : (tensor<100xi1>) -> tensor<100x8xi1>
      %c = stablehlo.select %q, %b, %a : tensor<100x8xi1>, tensor<100x8xf32>
      stablehlo.return %c : tensor<100x8xf32>
    }
  return %0 : tensor<100x8xf32>
}

// -----

// Left alone: lanes that read each other, those that a step changes after they have stopped, those that stop by
// another question than the loop's, and those with a matrix product in common.
// CHECK-LABEL: func.func @together
// CHECK-NOT: lamina.lanes =
func.func @together(%x: tensor<4096xf32>, %w: tensor<4096x4096xf32>) -> (tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>) {
  %f = stablehlo.constant dense<false> : tensor<i1>
  %nine = stablehlo.constant dense<9.0> : tensor<4096xf32>
  %eight = stablehlo.constant dense<8.0> : tensor<4096xf32>
  %0 = stablehlo.while(%a = %x) : tensor<4096xf32>
    cond {
      %p = stablehlo.compare LT, %a, %nine : (tensor<4096xf32>, tensor<4096xf32>) -> tensor<4096xi1>
      %any = stablehlo.reduce(%p init: %f) applies stablehlo.or across dimensions = [0] : (tensor<4096xi1>, tensor<i1>) -> tensor<i1>
      stablehlo.return %any : tensor<i1>
    } do {
      %p = stablehlo.compare LT, %a, %nine : (tensor<4096xf32>, tensor<4096xf32>) -> tensor<4096xi1>
      %r = stablehlo.reverse %a, dims = [0] : tensor<4096xf32>
      %b = stablehlo.add %a, %r : tensor<4096xf32>
      %c = stablehlo.select %p, %b, %a : tensor<4096xi1>, tensor<4096xf32>
      stablehlo.return %c : tensor<4096xf32>
    }
  %1 = stablehlo.while(%a = %x) : tensor<4096xf32>
    cond {
      %p = stablehlo.compare LT, %a, %nine : (tensor<4096xf32>, tensor<4096xf32>) -> tensor<4096xi1>
      %any = stablehlo.reduce(%p init: %f) applies stablehlo.or across dimensions = [0] : (tensor<4096xi1>, tensor<i1>) -> tensor<i1>
      stablehlo.return %any : tensor<i1>
    } do {
      %b = stablehlo.add %a, %a : tensor<4096xf32>
      stablehlo.return %b : tensor<4096xf32>
    }
  %2 = stablehlo.while(%a = %x) : tensor<4096xf32>
    cond {
      %p = stablehlo.compare LT, %a, %nine : (tensor<4096xf32>, tensor<4096xf32>) -> tensor<4096xi1>
      %any = stablehlo.reduce(%p init: %f) applies stablehlo.or across dimensions = [0] : (tensor<4096xi1>, tensor<i1>) -> tensor<i1>
      stablehlo.return %any : tensor<i1>
    } do {
      %p = stablehlo.compare LT, %a, %eight : (tensor<4096xf32>, tensor<4096xf32>) -> tensor<4096xi1>
      %b = stablehlo.add %a, %a : tensor<4096xf32>
      %c = stablehlo.select %p, %b, %a : tensor<4096xi1>, tensor<4096xf32>
      stablehlo.return %c : tensor<4096xf32>
    }
  %3 = stablehlo.while(%a = %x) : tensor<4096xf32>
    cond {
      %p = stablehlo.compare LT, %a, %nine : (tensor<4096xf32>, tensor<4096xf32>) -> tensor<4096xi1>
      %any = stablehlo.reduce(%p init: %f) applies stablehlo.or across dimensions = [0] : (tensor<4096xi1>, tensor<i1>) -> tensor<i1>
      stablehlo.return %any : tensor<i1>
    } do {
      %p = stablehlo.compare LT, %a, %nine : (tensor<4096xf32>, tensor<4096xf32>) -> tensor<4096xi1>
      %b = stablehlo.dot_general %w, %a, contracting_dims = [1] x [0] : (tensor<4096x4096xf32>, tensor<4096xf32>) -> tensor<4096xf32>
      %c = stablehlo.select %p, %b, %a : tensor<4096xi1>, tensor<4096xf32>
      stablehlo.return %c : tensor<4096xf32>
    }
  return %0, %1, %2, %3 : tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>
}

// -----

// Nor where the program says so, and where there is no more than one block.
module attributes {lamina.lanes_together} {
  // CHECK-LABEL: func.func @asked
  // CHECK-NOT: lamina.lanes =
  // CHECK: return
  func.func @asked(%x: tensor<4096xf32>) -> tensor<4096xf32> {
    %f = stablehlo.constant dense<false> : tensor<i1>
    %nine = stablehlo.constant dense<9.0> : tensor<4096xf32>
    %0 = stablehlo.while(%a = %x) : tensor<4096xf32>
      cond {
        %p = stablehlo.compare LT, %a, %nine : (tensor<4096xf32>, tensor<4096xf32>) -> tensor<4096xi1>
        %any = stablehlo.reduce(%p init: %f) applies stablehlo.or across dimensions = [0] : (tensor<4096xi1>, tensor<i1>) -> tensor<i1>
        stablehlo.return %any : tensor<i1>
      } do {
        %p = stablehlo.compare LT, %a, %nine : (tensor<4096xf32>, tensor<4096xf32>) -> tensor<4096xi1>
        %b = stablehlo.add %a, %a : tensor<4096xf32>
        %c = stablehlo.select %p, %b, %a : tensor<4096xi1>, tensor<4096xf32>
        stablehlo.return %c : tensor<4096xf32>
      }
    return %0 : tensor<4096xf32>
  }
}

// -----

// CHECK-LABEL: func.func @one_block
// CHECK-NOT: lamina.lanes =
// CHECK: return
func.func @one_block(%x: tensor<64xf32>) -> tensor<64xf32> {
  %f = stablehlo.constant dense<false> : tensor<i1>
  %nine = stablehlo.constant dense<9.0> : tensor<64xf32>
  %0 = stablehlo.while(%a = %x) : tensor<64xf32>
    cond {
      %p = stablehlo.compare LT, %a, %nine : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xi1>
      %any = stablehlo.reduce(%p init: %f) applies stablehlo.or across dimensions = [0] : (tensor<64xi1>, tensor<i1>) -> tensor<i1>
      stablehlo.return %any : tensor<i1>
    } do {
      %p = stablehlo.compare LT, %a, %nine : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xi1>
      %b = stablehlo.add %a, %a : tensor<64xf32>
      %c = stablehlo.select %p, %b, %a : tensor<64xi1>, tensor<64xf32>
      stablehlo.return %c : tensor<64xf32>
    }
  return %0 : tensor<64xf32>
}
