// RUN: %lamina-opt %s --stablehlo-find-extremes-first --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @rows
// CHECK: %[[I:.*]] = stablehlo.iota dim = 1 : tensor<4x64xi32>
// CHECK: %[[M:.*]] = stablehlo.reduce(%arg0 init: %{{.*}}) applies stablehlo.maximum across dimensions = [1]
// CHECK: %[[S:.*]] = stablehlo.broadcast_in_dim %[[M]], dims = [0]
// CHECK: %[[E:.*]] = stablehlo.compare {{ *}}EQ, %arg0, %[[S]]
// CHECK: %[[W:.*]] = stablehlo.select %[[E]], %[[I]], %{{.*}}
// CHECK: %[[R:.*]] = stablehlo.reduce(%[[W]] init: %{{.*}}) applies stablehlo.minimum across dimensions = [1]
// CHECK: return %[[R]]
func.func @rows(%x: tensor<4x64xi32>) -> tensor<4xi32> {
  %i = stablehlo.iota dim = 1 : tensor<4x64xi32>
  %low = stablehlo.constant dense<-2147483648> : tensor<i32>
  %c = stablehlo.constant dense<0> : tensor<i32>
  %1:2 = stablehlo.reduce(%x init: %low), (%i init: %c) across dimensions = [1] : (tensor<4x64xi32>, tensor<4x64xi32>, tensor<i32>, tensor<i32>) -> (tensor<4xi32>, tensor<4xi32>)
   reducer(%a: tensor<i32>, %b: tensor<i32>) (%p: tensor<i32>, %q: tensor<i32>)  {
    %2 = stablehlo.compare GT, %a, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %3 = stablehlo.compare EQ, %a, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %4 = stablehlo.compare LT, %p, %q, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %5 = stablehlo.and %3, %4 : tensor<i1>
    %6 = stablehlo.or %2, %5 : tensor<i1>
    %7 = stablehlo.select %2, %a, %b : tensor<i1>, tensor<i32>
    %8 = stablehlo.select %6, %p, %q : tensor<i1>, tensor<i32>
    stablehlo.return %7, %8 : tensor<i32>, tensor<i32>
  }
  return %1#1 : tensor<4xi32>
}

// -----

// The last of equal ones is another rule.
// CHECK-LABEL: func.func @others
// CHECK: stablehlo.reduce({{.*}}), (
func.func @others(%x: tensor<4x64xi32>) -> tensor<4xi32> {
  %i = stablehlo.iota dim = 1 : tensor<4x64xi32>
  %low = stablehlo.constant dense<-2147483648> : tensor<i32>
  %c = stablehlo.constant dense<0> : tensor<i32>
  %1:2 = stablehlo.reduce(%x init: %low), (%i init: %c) across dimensions = [1] : (tensor<4x64xi32>, tensor<4x64xi32>, tensor<i32>, tensor<i32>) -> (tensor<4xi32>, tensor<4xi32>)
   reducer(%a: tensor<i32>, %b: tensor<i32>) (%p: tensor<i32>, %q: tensor<i32>)  {
    %2 = stablehlo.compare GT, %a, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %7 = stablehlo.select %2, %a, %b : tensor<i1>, tensor<i32>
    %8 = stablehlo.select %2, %p, %q : tensor<i1>, tensor<i32>
    stablehlo.return %7, %8 : tensor<i32>, tensor<i32>
  }
  return %1#1 : tensor<4xi32>
}

// -----

// As JAX lowers it; the element is read, too.
// CHECK-LABEL: func.func @argmax
// CHECK: %[[I:.*]] = stablehlo.iota dim = 1
// CHECK: %[[MOST:.*]] = stablehlo.reduce(%arg0 init: {{.*}}) applies stablehlo.maximum across dimensions = [1]
// CHECK: %[[SPREAD:.*]] = stablehlo.broadcast_in_dim %[[MOST]]
// CHECK: %[[EQUAL:.*]] = stablehlo.compare EQ, %arg0, %[[SPREAD]]
// CHECK: %[[NAN:.*]] = stablehlo.compare NE, %arg0, %arg0
// CHECK: %[[FOUND:.*]] = stablehlo.or %[[EQUAL]], %[[NAN]]
// CHECK: %[[PLACE:.*]] = stablehlo.select %[[FOUND]], %[[I]]
// CHECK: %[[WHERE:.*]] = stablehlo.reduce(%[[PLACE]] init: {{.*}}) applies stablehlo.minimum across dimensions = [1]
// CHECK: return %[[MOST]], %[[WHERE]]
func.func @argmax(%x: tensor<4x8xf32>) -> (tensor<4xf32>, tensor<4xi32>) {
  %i = stablehlo.iota dim = 1 : tensor<4x8xi32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.reduce(%x init: %least), (%i init: %zero) across dimensions = [1] : (tensor<4x8xf32>, tensor<4x8xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)
   reducer(%a: tensor<f32>, %b: tensor<f32>) (%m: tensor<i32>, %n: tensor<i32>) {
    %0 = stablehlo.compare GT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %1 = stablehlo.compare NE, %a, %a, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %2 = stablehlo.or %0, %1 : tensor<i1>
    %3 = stablehlo.compare EQ, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %4 = stablehlo.compare LT, %m, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %5 = stablehlo.and %3, %4 : tensor<i1>
    %6 = stablehlo.or %2, %5 : tensor<i1>
    %7 = stablehlo.select %2, %a, %b : tensor<i1>, tensor<f32>
    %8 = stablehlo.select %6, %m, %n : tensor<i1>, tensor<i32>
    stablehlo.return %7, %8 : tensor<f32>, tensor<i32>
  }
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xi32>
}

// -----

// Computed in two loops, a distance may be rounded in two ways. A product and what is added to it is not.
// CHECK-LABEL: func.func @distances
// CHECK: stablehlo.reduce({{.*}}), (
// CHECK-LABEL: func.func @scores
// CHECK: applies stablehlo.maximum across dimensions = [1]
func.func @distances(%x: tensor<4x64xf32>, %y: tensor<4x64xf32>) -> tensor<4xi32> {
  %i = stablehlo.iota dim = 1 : tensor<4x64xi32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %c = stablehlo.constant dense<0> : tensor<i32>
  %d = stablehlo.subtract %x, %y : tensor<4x64xf32>
  %s = stablehlo.multiply %d, %d : tensor<4x64xf32>
  %1:2 = stablehlo.reduce(%s init: %low), (%i init: %c) across dimensions = [1] : (tensor<4x64xf32>, tensor<4x64xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)
   reducer(%a: tensor<f32>, %b: tensor<f32>) (%p: tensor<i32>, %q: tensor<i32>)  {
    %2 = stablehlo.compare GT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %n = stablehlo.compare NE, %a, %a, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %g = stablehlo.or %2, %n : tensor<i1>
    %3 = stablehlo.compare EQ, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %4 = stablehlo.compare LT, %p, %q, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %5 = stablehlo.and %3, %4 : tensor<i1>
    %6 = stablehlo.or %g, %5 : tensor<i1>
    %7 = stablehlo.select %g, %a, %b : tensor<i1>, tensor<f32>
    %8 = stablehlo.select %6, %p, %q : tensor<i1>, tensor<i32>
    stablehlo.return %7, %8 : tensor<f32>, tensor<i32>
  }
  return %1#1 : tensor<4xi32>
}

func.func @scores(%x: tensor<4x8xf32>, %w: tensor<8x64xf32>, %y: tensor<4x64xf32>) -> tensor<4xi32> {
  %i = stablehlo.iota dim = 1 : tensor<4x64xi32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %c = stablehlo.constant dense<0> : tensor<i32>
  %d = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x64xf32>) -> tensor<4x64xf32>
  %s = stablehlo.add %d, %y : tensor<4x64xf32>
  %1:2 = stablehlo.reduce(%s init: %low), (%i init: %c) across dimensions = [1] : (tensor<4x64xf32>, tensor<4x64xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)
   reducer(%a: tensor<f32>, %b: tensor<f32>) (%p: tensor<i32>, %q: tensor<i32>)  {
    %2 = stablehlo.compare GT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %n = stablehlo.compare NE, %a, %a, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %g = stablehlo.or %2, %n : tensor<i1>
    %3 = stablehlo.compare EQ, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %4 = stablehlo.compare LT, %p, %q, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %5 = stablehlo.and %3, %4 : tensor<i1>
    %6 = stablehlo.or %g, %5 : tensor<i1>
    %7 = stablehlo.select %g, %a, %b : tensor<i1>, tensor<f32>
    %8 = stablehlo.select %6, %p, %q : tensor<i1>, tensor<i32>
    stablehlo.return %7, %8 : tensor<f32>, tensor<i32>
  }
  return %1#1 : tensor<4xi32>
}

// -----

// A row that no cache holds: of each chunk first, and of those the reduction picks.
// CHECK-LABEL: func.func @long
// CHECK: %[[X:.*]] = stablehlo.reshape %arg0 : (tensor<131072xf32>) -> tensor<16x8192xf32>
// CHECK: %[[M:.*]] = stablehlo.reduce(%[[X]] init: %{{.*}}) applies stablehlo.maximum across dimensions = [1]
// CHECK: %[[W:.*]] = stablehlo.reduce({{.*}}) applies stablehlo.minimum across dimensions = [1] : (tensor<16x8192xi32>
// CHECK: %[[C:.*]] = stablehlo.iota dim = 0 : tensor<16xi32>
// CHECK: %[[B:.*]] = stablehlo.multiply %[[C]]
// CHECK: %[[P:.*]] = stablehlo.add %[[W]], %[[B]]
// CHECK: stablehlo.reduce(%[[M]] init: %{{.*}}), (%[[P]] init: %{{.*}}) across dimensions = [0] : (tensor<16xf32>, tensor<16xi32>
func.func @long(%x: tensor<131072xf32>) -> tensor<i32> {
  %lowest = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %i = stablehlo.iota dim = 0 : tensor<131072xi32>
  %r:2 = stablehlo.reduce(%x init: %lowest), (%i init: %zero) across dimensions = [0] : (tensor<131072xf32>, tensor<131072xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
    reducer(%a: tensor<f32>, %c: tensor<f32>) (%b: tensor<i32>, %d: tensor<i32>) {
    %0 = stablehlo.compare GT, %a, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %1 = stablehlo.compare NE, %a, %a : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %2 = stablehlo.or %0, %1 : tensor<i1>
    %3 = stablehlo.compare EQ, %a, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %4 = stablehlo.compare LT, %b, %d : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %5 = stablehlo.and %3, %4 : tensor<i1>
    %6 = stablehlo.or %2, %5 : tensor<i1>
    %7 = stablehlo.select %2, %a, %c : tensor<i1>, tensor<f32>
    %8 = stablehlo.select %6, %b, %d : tensor<i1>, tensor<i32>
    stablehlo.return %7, %8 : tensor<f32>, tensor<i32>
  }
  return %r#1 : tensor<i32>
}
