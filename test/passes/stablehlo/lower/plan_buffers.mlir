// RUN: %lamina-opt %s --split-input-file --pass-pipeline=stablehlo-plan-buffers | FileCheck %s
// RUN: %lamina-opt %s --split-input-file --pass-pipeline='stablehlo-plan-buffers{lends-results=true}' | FileCheck %s --check-prefix=LENDS
// RUN: %lamina-opt %s --split-input-file --pass-pipeline='stablehlo-plan-buffers{rotate-from=64}' | FileCheck %s --check-prefix=ROTATES

// Results are written where the caller wants them; a temporary lives in the arena.
// CHECK-LABEL: module @chain
// CHECK: func.func public @main(%[[X:.*]]: memref<4xf32>, %[[R:.*]]: memref<4xf32>, %[[ARENA:.*]]: memref<?xi8>)
// CHECK-SAME: lamina.arena_bytes = 64
// CHECK: %[[T:.*]] = memref.view %[[ARENA]]
// CHECK: call @f(%[[X]], %[[T]])
// CHECK-NEXT: {{.*}}call @f(%[[T]], %[[R]])
// CHECK-NEXT: return
// CHECK: module @kernels
// CHECK: func.func private @f(%{{.*}}: tensor<4xf32>) -> tensor<4xf32>
// CHECK: func.func private @f(memref<4xf32>, memref<4xf32>)
// One that dies where the result is written is no lodger of it.
// LENDS-LABEL: module @chain
// LENDS: lamina.arena_bytes = 64
module @chain {
  func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = call @f(%0) : (tensor<4xf32>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
  func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.sine %x : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func private @never_called(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}

// -----

// Two loops of 50 us on one core each: what the second needs goes in front of both, and as they run at
// the same time, all that they read and write has places of its own.
// CHECK-LABEL: module @team
// CHECK-SAME: {
// CHECK: lamina.arena_bytes = 192
// CHECK: call @f(
// CHECK-NEXT: {{.*}}call @loop({{.*}}) {lamina.team = 1 : i64}
// CHECK-NEXT: {{.*}}call @loop({{.*}}) {lamina.team = 1 : i64}
// CHECK-NEXT: {{.*}}call @g(
module @team {
  func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = call @loop(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %2 = call @loop(%1) : (tensor<4xf32>) -> tensor<4xf32>
    %3 = call @g(%0, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %3 : tensor<4xf32>
  }
  func.func private @loop(%x: tensor<4xf32>) -> tensor<4xf32> attributes {lamina.alone_ns = 50000 : i64} {
    %0 = stablehlo.sine %x : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.cosine %x : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func private @g(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.add %x, %y : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

// A loop fills an array row by row: no copy of the array, neither before the loop nor in it.
// CHECK-LABEL: module @scan
// CHECK-NOT: call @never_called
// CHECK: func.func public @main(%[[N:.*]]: memref<i32>, %[[ROWS:.*]]: memref<1024x64xf32>, %{{.*}}: memref<?xi8>)
// CHECK: memref.copy %{{.*}}, %[[ROWS]] : memref<1024x64xf32>
// CHECK: scf.while : () -> () {
// CHECK:   call @less
// CHECK:   memref.load
// CHECK: } do {
// CHECK-NOT: memref.copy
// CHECK:   call @row
// CHECK-NEXT: {{.*}}call @update(%[[ROWS]], %{{.*}}, %[[I:[a-z_0-9]+]])
// CHECK-NEXT: {{.*}}call @next_over_0(%[[I]])
// CHECK-NEXT: scf.yield
// CHECK: module @kernels
// CHECK: func.func private @next_over_0(%{{.*}}: tensor<i32> {lamina.inout = 0 : i32})
module @scan {
  func.func public @main(%n: tensor<i32>) -> tensor<1024x64xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %zeros = stablehlo.constant dense<0.0> : tensor<1024x64xf32>
    %0:2 = scf.while (%i = %c, %rows = %zeros) : (tensor<i32>, tensor<1024x64xf32>) -> (tensor<i32>, tensor<1024x64xf32>) {
      %1 = func.call @less(%i, %n) : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %2 = tensor.extract %1[] : tensor<i1>
      scf.condition(%2) %i, %rows : tensor<i32>, tensor<1024x64xf32>
    } do {
    ^bb0(%i: tensor<i32>, %rows: tensor<1024x64xf32>):
      %1 = func.call @next(%i) : (tensor<i32>) -> tensor<i32>
      %2 = func.call @row(%i) : (tensor<i32>) -> tensor<1x64xf32>
      %3 = func.call @update(%rows, %2, %i) : (tensor<1024x64xf32>, tensor<1x64xf32>, tensor<i32>) -> tensor<1024x64xf32>
      scf.yield %1, %3 : tensor<i32>, tensor<1024x64xf32>
    }
    return %0#1 : tensor<1024x64xf32>
  }
  func.func private @less(%a: tensor<i32>, %b: tensor<i32>) -> tensor<i1> {
    %0 = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
    return %0 : tensor<i1>
  }
  func.func private @next(%i: tensor<i32> {lamina.may_alias = array<i64: 0>}) -> tensor<i32> {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %0 = stablehlo.add %i, %c : tensor<i32>
    return %0 : tensor<i32>
  }
  func.func private @row(%i: tensor<i32>) -> tensor<1x64xf32> {
    %0 = stablehlo.convert %i : (tensor<i32>) -> tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<1x64xf32>
    return %1 : tensor<1x64xf32>
  }
  func.func private @update(%rows: tensor<1024x64xf32> {lamina.inout = 0 : i32}, %row: tensor<1x64xf32>, %i: tensor<i32>) -> tensor<1024x64xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_update_slice %rows, %row, %i, %c : (tensor<1024x64xf32>, tensor<1x64xf32>, tensor<i32>, tensor<i32>) -> tensor<1024x64xf32>
    return %0 : tensor<1024x64xf32>
  }
}

// -----

// A donated argument is overwritten; the same array not donated is copied first. A reshape is free.
// CHECK-LABEL: module @donation
// CHECK: func.func public @main(%[[A:.*]]: memref<4xf32>, %[[B:.*]]: memref<2x2xf32>, %{{.*}}: memref<4xf32> {lamina.alias_of = 0 : i64}, %[[R:.*]]: memref<4xf32>, %{{.*}}: memref<?xi8>)
// CHECK-SAME: lamina.arena_bytes = 0
// CHECK: %[[VIEW:.*]] = memref.reinterpret_cast %[[B]]
// CHECK: call @bump(%[[A]])
// CHECK: memref.copy %[[VIEW]], %[[R]]
// CHECK: call @bump(%[[R]])
module @donation {
  func.func public @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<2x2xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %0 = call @bump(%a) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = stablehlo.reshape %b : (tensor<2x2xf32>) -> tensor<4xf32>
    %2 = call @bump(%1) : (tensor<4xf32>) -> tensor<4xf32>
    return %0, %2 : tensor<4xf32>, tensor<4xf32>
  }
  func.func private @bump(%x: tensor<4xf32> {lamina.inout = 0 : i32}) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}

// -----

// Branches write one result; an argument returned is copied; a small constant is data.
// CHECK-LABEL: module @branches
// CHECK: memref.global "private" constant @constant_{{.*}} = dense<[(1.000000e+00,2.000000e+00)
// CHECK: func.func public @main(%[[I:.*]]: memref<i32>, %[[X:.*]]: memref<4xf32>, %[[R0:.*]]: memref<4xf32>, %[[R1:.*]]: memref<4xf32>, %[[R2:.*]]: memref<2xcomplex<f32>>, %{{.*}}: memref<?xi8>)
// CHECK: %[[K:.*]] = memref.load %[[I]][]
// CHECK: %[[KI:.*]] = arith.index_cast %[[K]]
// CHECK: scf.index_switch %[[KI]]
// CHECK: case 0 {
// CHECK-NEXT: func.call @f(%[[X]], %[[R0]])
// CHECK: default {
// CHECK-NEXT: memref.copy %[[X]], %[[R0]]
// CHECK-DAG: memref.copy %[[X]], %[[R1]]
// CHECK-DAG: memref.copy %{{.*}}, %[[R2]]
module @branches {
  func.func public @main(%i: tensor<i32>, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<2xcomplex<f32>>) {
    %c = stablehlo.constant dense<[(1.0, 2.0), (3.0, 4.0)]> : tensor<2xcomplex<f32>>
    %0 = tensor.extract %i[] : tensor<i32>
    %1 = arith.index_cast %0 : i32 to index
    %2 = scf.index_switch %1 -> tensor<4xf32>
    case 0 {
      %3 = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
      scf.yield %3 : tensor<4xf32>
    }
    default {
      scf.yield %x : tensor<4xf32>
    }
    return %2, %x, %c : tensor<4xf32>, tensor<4xf32>, tensor<2xcomplex<f32>>
  }
  func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.sine %x : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

// Which operand becomes which result is chosen here: each donated one its own, without a copy.
// CHECK-LABEL: module @several_in_place
// CHECK: func.func public @main(%[[P:arg0]]: memref<4xf32>, %[[M:arg1]]: memref<4xf32>, %[[G:arg2]]: memref<4xf32>
// CHECK-NOT: memref.copy
// CHECK: call @adam_over_1to0_2to1(%[[G]], %[[M]], %[[P]])
// CHECK-NOT: memref.copy
// CHECK: return
// CHECK: func.func private @adam_over_1to0_2to1(%{{.*}}: tensor<4xf32>, %{{.*}}: tensor<4xf32> {lamina.inout = 0 : i32}, %{{.*}}: tensor<4xf32> {lamina.inout = 1 : i32})
module @several_in_place {
  func.func public @main(%p: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %m: tensor<4xf32> {tf.aliasing_output = 1 : i32}, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %0:2 = call @adam(%g, %m, %p) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    return %0#1, %0#0 : tensor<4xf32>, tensor<4xf32>
  }
  func.func private @adam(%g: tensor<4xf32> {lamina.may_alias = array<i64: 0, 1>}, %m: tensor<4xf32> {lamina.may_alias = array<i64: 0, 1>}, %p: tensor<4xf32> {lamina.may_alias = array<i64: 0, 1>}) -> (tensor<4xf32>, tensor<4xf32>) {
    %0 = stablehlo.add %m, %g : tensor<4xf32>
    %1 = stablehlo.subtract %p, %0 : tensor<4xf32>
    return %0, %1 : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// A constant read under another shape: the data has one shape, the kernel sees its own.
// CHECK-LABEL: module @reshaped_constant
// CHECK: %[[DATA:.*]] = memref.get_global @constant_{{.*}} : memref<f32>
// CHECK: %[[VIEW:.*]] = memref.reinterpret_cast %[[DATA]]
// CHECK-SAME: memref<f32> to memref<1xf32>
// CHECK: call @f(%[[VIEW]],
module @reshaped_constant {
  func.func public @main() -> tensor<1xf32> {
    %c = stablehlo.constant dense<2.0> : tensor<f32>
    %0 = stablehlo.reshape %c : (tensor<f32>) -> tensor<1xf32>
    %1 = call @f(%0) : (tensor<1xf32>) -> tensor<1xf32>
    return %1 : tensor<1xf32>
  }
  func.func private @f(%x: tensor<1xf32>) -> tensor<1xf32> {
    %0 = stablehlo.sine %x : tensor<1xf32>
    return %0 : tensor<1xf32>
  }
}

// -----

// Of two temporaries in a row the first lives in the result, which is written later.
// LENDS-LABEL: module @lent
// LENDS: func.func public @main(%[[X:.*]]: memref<4xf32>, %[[R:.*]]: memref<8xf32>, %[[ARENA:.*]]: memref<?xi8>)
// LENDS-SAME: lamina.arena_bytes = 64
// LENDS: %[[BYTES:.*]] = builtin.unrealized_conversion_cast %[[R]] : memref<8xf32> to memref<?xi8>
// LENDS: %[[A:.*]] = memref.view %[[BYTES]][%{{.*}}][] {lamina.live = "2..3"}
// LENDS: %[[B:.*]] = memref.view %[[ARENA]][%{{.*}}][] {lamina.live = "3..4"}
// LENDS: call @f(%[[X]], %[[A]])
// LENDS-NEXT: call @f(%[[A]], %[[B]])
// LENDS-NEXT: call @g(%[[B]], %[[R]])
module @lent {
  func.func public @main(%x: tensor<4xf32>) -> tensor<8xf32> {
    %0 = call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = call @f(%0) : (tensor<4xf32>) -> tensor<4xf32>
    %2 = call @g(%1) : (tensor<4xf32>) -> tensor<8xf32>
    return %2 : tensor<8xf32>
  }
  func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.sine %x : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func private @g(%x: tensor<4xf32>) -> tensor<8xf32> {
    %0 = stablehlo.concatenate %x, %x, dim = 0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}

// -----

// The older of two levels takes over the newer, which takes over what a step makes. The loop carries
// their buffers, and that of the counter, which is small, not. After it both are brought back: after
// one step too many, and after two.
// CHECK-LABEL: module @exchanged
// CHECK: scf.while : () -> ()
// CHECK: memref.copy
// CHECK: memref.copy
// CHECK: scf.yield
// ROTATES-LABEL: module @exchanged
// ROTATES: %[[END:.*]]:3 = scf.while (%[[A:.*]] = %[[HOME_A:.*]], %[[B:.*]] = %[[HOME_B:.*]], %[[C:.*]] = %[[HOME_C:.*]]) :
// ROTATES: ^bb0(%[[A:.*]]: memref<64xi8>, %[[B:.*]]: memref<64xi8>, %[[C:.*]]: memref<64xi8>):
// ROTATES: %[[NOW:.*]] = memref.view %[[B]][%{{.*}}][] : memref<64xi8> to memref<16xf32>
// ROTATES: %[[BEFORE:.*]] = memref.view %[[A]][%{{.*}}][] : memref<64xi8> to memref<16xf32>
// ROTATES: %[[NEW:.*]] = memref.view %[[C]][%{{.*}}][] : memref<64xi8> to memref<16xf32>
// ROTATES-NOT: memref.copy {{.*}}xf32
// ROTATES: call @f(%[[NOW]], %[[BEFORE]], %[[NEW]])
// ROTATES-NOT: memref.copy {{.*}}xf32
// ROTATES: scf.yield %[[B]], %[[C]], %[[A]]
// ROTATES: %[[AT:.*]] = memref.extract_aligned_pointer_as_index %[[END]]#0
// ROTATES: %[[OTHER:.*]] = memref.extract_aligned_pointer_as_index %[[HOME_B]]
// ROTATES: %[[TURNED:.*]] = arith.cmpi eq, %[[AT]], %[[OTHER]]
// ROTATES: scf.if %[[TURNED]] {
// ROTATES-COUNT-2: memref.copy
// ROTATES: %[[OTHER:.*]] = memref.extract_aligned_pointer_as_index %[[HOME_C]]
// ROTATES: scf.if
// ROTATES-COUNT-2: memref.copy
// ROTATES: return
module @exchanged {
  func.func public @main(%i: tensor<i32>, %x: tensor<16xf32>, %y: tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>) {
    %0:3 = scf.while (%a = %i, %now = %x, %before = %y) : (tensor<i32>, tensor<16xf32>, tensor<16xf32>) -> (tensor<i32>, tensor<16xf32>, tensor<16xf32>) {
      %1 = func.call @less(%a) : (tensor<i32>) -> tensor<i1>
      %2 = tensor.extract %1[] : tensor<i1>
      scf.condition(%2) %a, %now, %before : tensor<i32>, tensor<16xf32>, tensor<16xf32>
    } do {
    ^bb0(%a: tensor<i32>, %now: tensor<16xf32>, %before: tensor<16xf32>):
      %1 = func.call @f(%now, %before) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
      %2 = func.call @next(%a) : (tensor<i32>) -> tensor<i32>
      scf.yield %2, %1, %now : tensor<i32>, tensor<16xf32>, tensor<16xf32>
    }
    return %0#1, %0#2 : tensor<16xf32>, tensor<16xf32>
  }
  func.func private @less(%a: tensor<i32>) -> tensor<i1> {
    %0 = stablehlo.constant dense<7> : tensor<i32>
    %1 = stablehlo.compare LT, %a, %0 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    return %1 : tensor<i1>
  }
  func.func private @next(%a: tensor<i32>) -> tensor<i32> {
    %0 = stablehlo.add %a, %a : tensor<i32>
    return %0 : tensor<i32>
  }
  func.func private @f(%x: tensor<16xf32>, %y: tensor<16xf32>) -> tensor<16xf32> {
    %0 = stablehlo.reverse %x, dims = [0] : tensor<16xf32>
    %1 = stablehlo.subtract %0, %y : tensor<16xf32>
    return %1 : tensor<16xf32>
  }
}
