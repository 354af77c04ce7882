// RUN: %lamina-opt %s --pass-pipeline=memref-join-loops | FileCheck %s

// A row's temporary goes away, and both sums are carried by one loop.
// CHECK-LABEL: func.func @rows
// CHECK-NOT: memref.alloc() : memref<8xf32>
// CHECK: memref.store %{{.*}}, %[[SUM:.*]][] : memref<f32>
// CHECK: %[[BOTH:.*]]:2 = scf.for %[[J:.*]] = {{.*}} iter_args(%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}})
// CHECK-NEXT: %[[X:.*]] = memref.load %arg0[%[[J]]]
// CHECK-NEXT: %[[P:.*]] = arith.mulf %[[X]], %[[X]]
// CHECK-NEXT: memref.store %[[P]], %arg1[%[[J]]]
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[A]], %[[P]]
// CHECK-NEXT: %[[T:.*]] = arith.addf %[[B]], %[[X]]
// CHECK-NEXT: scf.yield %[[S]], %[[T]]
// CHECK-NOT: scf.for
// CHECK: memref.store %[[BOTH]]#0, %[[SUM]][]
func.func @rows(%x: memref<8xf32>, %y: memref<8xf32>) -> f32 {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c1 = arith.constant 1 : index
  %t = memref.alloc() : memref<8xf32>
  %sum = memref.alloc() : memref<f32>
  scf.for %j = %c0 to %c8 step %c1 {
    %v = memref.load %x[%j] : memref<8xf32>
    %p = arith.mulf %v, %v : f32
    memref.store %p, %t[%j] : memref<8xf32>
  }
  memref.store %zero, %sum[] : memref<f32>
  %same8 = arith.constant 8 : index
  %first = memref.load %sum[] : memref<f32>
  %s = scf.for %j = %c0 to %same8 step %c1 iter_args(%carry = %first) -> f32 {
    %p = memref.load %t[%j] : memref<8xf32>
    memref.store %p, %y[%j] : memref<8xf32>
    %n = arith.addf %carry, %p fastmath<reassoc> : f32
    scf.yield %n : f32
  }
  memref.store %s, %sum[] : memref<f32>
  %u = scf.for %j = %c0 to %c8 step %c1 iter_args(%carry = %zero) -> f32 {
    %v = memref.load %x[%j] : memref<8xf32>
    %n = arith.addf %carry, %v fastmath<reassoc> : f32
    scf.yield %n : f32
  }
  return %u : f32
}

// The second loop needs the first one's sum, and the last what is stored of the third's. The second
// and the third are one.
// CHECK-LABEL: func.func @needs_the_sum
// CHECK-COUNT-3: scf.for
// CHECK-NOT: scf.for
func.func @needs_the_sum(%x: memref<8xf32>, %y: memref<8xf32>, %sum: memref<f32>) -> f32 {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c1 = arith.constant 1 : index
  %s = scf.for %j = %c0 to %c8 step %c1 iter_args(%carry = %zero) -> f32 {
    %v = memref.load %x[%j] : memref<8xf32>
    %n = arith.addf %carry, %v fastmath<reassoc> : f32
    scf.yield %n : f32
  }
  scf.for %j = %c0 to %c8 step %c1 {
    memref.store %s, %y[%j] : memref<8xf32>
  }
  %t = scf.for %j = %c0 to %c8 step %c1 iter_args(%carry = %zero) -> f32 {
    %v = memref.load %sum[] : memref<f32>
    %w = memref.load %x[%j] : memref<8xf32>
    %p = arith.mulf %v, %w : f32
    %n = arith.addf %carry, %p fastmath<reassoc> : f32
    scf.yield %n : f32
  }
  memref.store %t, %sum[] : memref<f32>
  scf.for %j = %c0 to %c8 step %c1 {
    %v = memref.load %sum[] : memref<f32>
    memref.store %v, %x[%j] : memref<8xf32>
  }
  return %t : f32
}

// Other elements than the ones just written; an order that must be kept; two widths; other bounds.
// CHECK-LABEL: func.func @apart
// CHECK-COUNT-6: scf.for
// CHECK-NOT: scf.for
func.func @apart(%x: memref<2x8xf32>, %y: memref<8x8xf32>, %z: memref<8xf64>) -> f32 {
  %zero = arith.constant 0.0 : f32
  %zero64 = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c7 = arith.constant 7 : index
  %c1 = arith.constant 1 : index
  scf.for %j = %c0 to %c8 step %c1 {
    memref.store %zero, %y[%c1, %j] : memref<8x8xf32>
  }
  scf.for %j = %c0 to %c8 step %c1 {
    %v = memref.load %y[%j, %c1] : memref<8x8xf32>
    memref.store %v, %x[%c0, %j] : memref<2x8xf32>
  }
  scf.for %j = %c0 to %c8 step %c1 {
    memref.store %zero64, %z[%j] : memref<8xf64>
  }
  scf.for %j = %c0 to %c8 step %c1 {
    memref.store %zero, %x[%c1, %j] : memref<2x8xf32>
  }
  %s = scf.for %j = %c0 to %c8 step %c1 iter_args(%carry = %zero) -> f32 {
    %v = memref.load %x[%c1, %j] : memref<2x8xf32>
    %n = arith.subf %v, %carry : f32
    scf.yield %n : f32
  }
  scf.for %j = %c0 to %c7 step %c1 {
    memref.store %zero, %x[%c1, %j] : memref<2x8xf32>
  }
  return %s : f32
}
