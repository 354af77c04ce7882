// RUN: %lamina-opt %s --pass-pipeline='memref-vectorize-loops{vector-bits=512}' --split-input-file | FileCheck %s
// RUN: %lamina-opt %s --pass-pipeline='memref-vectorize-loops{vector-bits=256}' --split-input-file | FileCheck %s --check-prefix=NARROW
// RUN: %lamina-opt %s --pass-pipeline='memref-vectorize-loops{vector-bits=512 prefetch=true}' --split-input-file | FileCheck %s --check-prefix=AHEAD
// RUN: %lamina-opt %s --pass-pipeline='memref-vectorize-loops{vector-bits=512 beside-vectors=true}' --split-input-file | FileCheck %s --check-prefix=BESIDE
// RUN: %lamina-opt %s --pass-pipeline='memref-vectorize-loops{vector-bits=512 everywhere=true}' --split-input-file | FileCheck %s --check-prefix=EVERYWHERE
// RUN: %lamina-opt %s --pass-pipeline='memref-vectorize-loops{vector-bits=256 gathers=false}' --split-input-file | FileCheck %s --check-prefix=APART

// What stays the same is done once, and what remains with a mask. What was stored is not loaded again.
// CHECK: module attributes {lamina.vectors}
// CHECK-LABEL: func.func @elementwise
// CHECK: %[[S:.*]] = memref.load %arg2[]
// CHECK: %[[SS:.*]] = vector.broadcast %[[S]] : f32 to vector<16xf32>
// CHECK: scf.for %[[J:.*]] = %c0 to %c32{{.*}} step %c16
// CHECK-NEXT: %[[V:.*]] = vector.load %arg0[%arg3, %[[J]]] : memref<4x40xf32>, vector<16xf32>
// CHECK-NEXT: %[[P:.*]] = arith.mulf %[[V]], %[[SS]] : vector<16xf32>
// CHECK-NEXT: vector.store %[[P]], %arg1[%arg3, %[[J]]]
// CHECK-NEXT: %[[E:.*]] = math.exp %[[P]] : vector<16xf32>
// CHECK-NEXT: vector.store %[[E]], %arg1[%arg3, %[[J]]]
// CHECK-NEXT: }
// CHECK: %[[COUNT:.*]] = arith.index_cast %c8{{.*}} : index to i32
// CHECK: %[[END:.*]] = vector.broadcast %[[COUNT]] : i32 to vector<16xi32>
// CHECK: %[[MASK:.*]] = arith.cmpi slt, %{{.*}}, %[[END]] : vector<16xi32>
// CHECK: vector.maskedload %arg0[%arg3, %c32{{.*}}], %[[MASK]]
// CHECK: vector.maskedstore %arg1[%arg3, %c32{{.*}}], %[[MASK]]
// NARROW-LABEL: func.func @elementwise
// NARROW: vector<8xf32>
// NARROW-NOT: vector.maskedload
// BESIDE-LABEL: func.func @elementwise
// BESIDE-NOT: vector.
// BESIDE: return
func.func @elementwise(%x: memref<4x40xf32>, %y: memref<4x40xf32>, %s: memref<f32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c40 = arith.constant 40 : index
  scf.for %i = %c0 to %c4 step %c1 {
    scf.for %j = %c0 to %c40 step %c1 {
      %v = memref.load %x[%i, %j] : memref<4x40xf32>
      %u = memref.load %s[] : memref<f32>
      %p = arith.mulf %v, %u : f32
      memref.store %p, %y[%i, %j] : memref<4x40xf32>
      %q = memref.load %y[%i, %j] : memref<4x40xf32>
      %e = math.exp %q : f32
      memref.store %e, %y[%i, %j] : memref<4x40xf32>
    }
  }
  return
}

// -----

// A sum whose order is free is several sums; how many elements there are is found out when it runs.
// CHECK-LABEL: func.func @sum
// CHECK: %[[MANY:.*]]:4 = scf.for %{{.*}} = %arg1 to %[[END:.*]] step %c64
// CHECK-COUNT-4: arith.addf {{.*}} fastmath<reassoc> : vector<16xf32>
// CHECK: %[[ONE:.*]] = scf.for %[[J:.*]] = %[[END]] to %arg2 step %c16{{.*}} iter_args(%[[A:.*]] = %[[MANY]]#0)
// CHECK-NEXT: %[[LEFT:.*]] = arith.subi %arg2, %[[J]]
// CHECK-NEXT: %[[COUNT:.*]] = arith.index_cast %[[LEFT]] : index to i32
// CHECK-NEXT: %[[END:.*]] = vector.broadcast %[[COUNT]] : i32 to vector<16xi32>
// CHECK-NEXT: %[[MASK:.*]] = arith.cmpi slt, %{{.*}}, %[[END]] : vector<16xi32>
// CHECK: %[[B:.*]] = arith.addf %[[A]], %{{.*}} fastmath<reassoc> : vector<16xf32>
// CHECK-NEXT: %[[C:.*]] = arith.select %[[MASK]], %[[B]], %[[A]]
// CHECK: vector.reduction <add>, %{{.*}}, %cst fastmath<reassoc> : vector<16xf32> into f32
// NARROW-LABEL: func.func @sum
// NARROW: %[[S:.*]] = vector.reduction <add>
// NARROW: scf.for %{{.*}} = %{{.*}} to %arg2 step %c1 iter_args(%{{.*}} = %[[S]]) -> (f32)
func.func @sum(%x: memref<100xf32>, %low: index, %high: index) -> f32 {
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %r = scf.for %j = %low to %high step %c1 iter_args(%a = %zero) -> f32 {
    %v = memref.load %x[%j] : memref<100xf32>
    %b = arith.addf %a, %v fastmath<reassoc> : f32
    scf.yield %b : f32
  }
  return %r : f32
}

// -----

// A loop's variable counts lanes. A short loop is as many vectors as it is long.
// CHECK-LABEL: func.func @count
// CHECK-NOT: scf.for
// CHECK: arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : vector<8xi32>
// CHECK: vector.broadcast %{{.*}} : i32 to vector<8xi32>
// CHECK: vector.store %{{.*}}, %arg0[%{{.*}}] : memref<8xi32>, vector<8xi32>
func.func @count(%x: memref<8xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %j = %c0 to %c8 step %c1 {
    %n = arith.index_cast %j : index to i32
    memref.store %n, %x[%j] : memref<8xi32>
  }
  return
}

// -----

// A sum in order stays scalar; a short row is filled by vectors beside it.
// CHECK-LABEL: func.func @in_order
// CHECK: vector.store
// CHECK: arith.addf %{{.*}} : f32
func.func @in_order(%x: memref<32xf32>, %y: memref<32xf32>) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0.0 : f32
  scf.for %j = %c0 to %c32 step %c1 {
    memref.store %zero, %y[%j] : memref<32xf32>
  }
  %r = scf.for %j = %c0 to %c32 step %c1 iter_args(%a = %zero) -> f32 {
    %v = memref.load %x[%j] : memref<32xf32>
    %b = arith.addf %a, %v : f32
    scf.yield %b : f32
  }
  return %r : f32
}

// -----

// Elements that lie apart are moved one by one, by a loop that LLVM's vectoriser is not asked about.
// CHECK: module attributes {lamina.vectors}
// CHECK-NEXT: func.func @apart
// CHECK: scf.for
// CHECK-NEXT: memref.load %arg0
// CHECK-NEXT: memref.store
func.func @apart(%x: memref<32x32xf64>, %y: memref<32xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  scf.for %j = %c0 to %c32 step %c1 {
    %v = memref.load %x[%j, %c0] : memref<32x32xf64>
    memref.store %v, %y[%j] : memref<32xf64>
  }
  return
}

// -----

// So are those of which some are where a table says.
// CHECK: module attributes {lamina.vectors}
// CHECK-NEXT: func.func @apart_by_table
// CHECK: scf.for
// CHECK-NEXT: memref.load %arg1
func.func @apart_by_table(%x: memref<40x32xf64>, %at: memref<32xi32>, %y: memref<32x32xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  scf.for %j = %c0 to %c32 step %c1 {
    %i = memref.load %at[%j] : memref<32xi32>
    %row = arith.index_cast %i : i32 to index
    %u = memref.load %x[%row, %c0] : memref<40x32xf64>
    %v = memref.load %x[%j, %c1] : memref<40x32xf64>
    %w = arith.addf %u, %v : f64
    memref.store %w, %y[%j, %c0] : memref<32x32xf64>
  }
  return
}

// -----

// Where a table says where most are, vectors gather.
// CHECK: module {
// CHECK-NEXT: func.func @by_table
func.func @by_table(%x: memref<40xf64>, %at: memref<32xi32>, %y: memref<32xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  scf.for %j = %c0 to %c32 step %c1 {
    %i = memref.load %at[%j] : memref<32xi32>
    %row = arith.index_cast %i : i32 to index
    %v = memref.load %x[%row] : memref<40xf64>
    memref.store %v, %y[%j] : memref<32xf64>
  }
  return
}

// -----

// Narrower ones stay as they are where nothing but moves is left, from apart to apart.
// CHECK: module attributes {lamina.vectors}
// CHECK-NEXT: func.func @edge
// CHECK: scf.for
// CHECK-NEXT: memref.load %arg0
// CHECK-NEXT: memref.store
func.func @edge(%x: memref<32x32xf32>, %y: memref<32x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c31 = arith.constant 31 : index
  %c32 = arith.constant 32 : index
  scf.for %j = %c0 to %c32 step %c1 {
    %v = memref.load %x[%j, %c31] : memref<32x32xf32>
    memref.store %v, %y[%j, %c0] : memref<32x32xf32>
  }
  return
}

// -----

// CHECK: module attributes {lamina.vectors}
// CHECK-NEXT: func.func @counted_bits
// CHECK: math.ctpop %{{.*}} : vector<16xi32>
func.func @counted_bits(%x: memref<32xi32>, %y: memref<32xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  scf.for %j = %c0 to %c32 step %c1 {
    %v = memref.load %x[%j] : memref<32xi32>
    %n = math.ctpop %v : i32
    memref.store %n, %y[%j] : memref<32xi32>
  }
  return
}

// -----

// Where more than arithmetic is done to them, they are gathered.
// CHECK: module attributes {lamina.vectors} {
// CHECK-NEXT: func.func @root
// CHECK: vector.gather
// CHECK: math.sqrt
func.func @root(%x: memref<32x32xf64>, %y: memref<32xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  scf.for %j = %c0 to %c32 step %c1 {
    %v = memref.load %x[%j, %c0] : memref<32x32xf64>
    %r = math.sqrt %v : f64
    memref.store %r, %y[%j] : memref<32xf64>
  }
  return
}

// -----

// Beside a loop that nobody can do side by side (what it carries has an order), the others are over vectors: LLVM's
// vectoriser would look for more in vain.
// CHECK: module attributes {lamina.simplify, lamina.vectors} {
// CHECK-NEXT: func.func @beside_another
// CHECK: vector.load %arg0
// CHECK: vector.store
// CHECK: scf.for {{.*}} iter_args
// CHECK-NEXT: memref.load %arg1
// CHECK-NEXT: arith.divf
func.func @beside_another(%x: memref<64xf32>, %y: memref<64xf32>, %one: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  scf.for %j = %c0 to %c64 step %c1 {
    %v = memref.load %x[%j] : memref<64xf32>
    %p = arith.mulf %v, %v : f32
    memref.store %p, %y[%j] : memref<64xf32>
  }
  %r = scf.for %j = %c0 to %c64 step %c1 iter_args(%a = %one) -> f32 {
    %v = memref.load %y[%j] : memref<64xf32>
    %b = arith.divf %a, %v : f32
    scf.yield %b : f32
  }
  return %r : f32
}

// -----

// A loop that is so short that LLVM leaves none is LLVM's.
// CHECK: module {
// CHECK-NEXT: func.func @short
// CHECK-NOT: vector
func.func @short(%x: memref<16x32xf64>, %y: memref<16xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  scf.for %j = %c0 to %c16 step %c1 {
    %v = memref.load %x[%j, %c0] : memref<16x32xf64>
    memref.store %v, %y[%j] : memref<16xf64>
  }
  return
}

// -----

// So is what another iteration has written.
// CHECK-LABEL: func.func @shifted
// CHECK-NOT: vector<
func.func @shifted(%x: memref<33xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  scf.for %j = %c0 to %c32 step %c1 {
    %k = arith.addi %j, %c1 : index
    %v = memref.load %x[%j] : memref<33xf32>
    memref.store %v, %x[%k] : memref<33xf32>
  }
  return
}

// -----

// Sums of short columns stay in registers: the loop around carries them.
// CHECK-LABEL: func.func @columns
// CHECK-DAG: vector.load %arg1[%c0] : memref<32xf32>, vector<16xf32>
// CHECK-DAG: vector.load %arg1[%c16{{.*}}] : memref<32xf32>, vector<16xf32>
// CHECK: %[[S:.*]]:8 = scf.for {{.*}} iter_args(
// CHECK-NOT: vector.{{(load|store)}} %arg1
// CHECK: scf.yield
// CHECK: %[[A:.*]] = arith.addf %[[S]]#0, %[[S]]#2
// CHECK: %[[B:.*]] = arith.addf %[[S]]#4, %[[S]]#6
// CHECK: %[[C:.*]] = arith.addf %[[A]], %[[B]]
// CHECK: vector.store %[[C]], %arg1[%c0]
// CHECK: vector.store %{{.*}}, %arg1[%c16{{.*}}]
func.func @columns(%x: memref<32x32xf32>, %y: memref<32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  scf.for %i = %c0 to %c32 step %c1 {
    scf.for %j = %c0 to %c32 step %c1 {
      %s = memref.load %y[%j] : memref<32xf32>
      %v = memref.load %x[%i, %j] : memref<32x32xf32>
      %t = arith.addf %s, %v fastmath<reassoc> : f32
      memref.store %t, %y[%j] : memref<32xf32>
    }
  }
  return
}

// -----

// What an iteration tells itself is no place in memory. Behind the last index may stand some of size 1.
// CHECK-LABEL: func.func @told
// CHECK: %[[V:.*]] = vector.load %arg0[%{{.*}}, %c0] : memref<32x1xf32>, vector<16xf32>
// CHECK: %[[P:.*]] = arith.mulf %[[V]], %[[V]]
// CHECK-NOT: memref.store
// CHECK: vector.store %[[P]], %arg1
func.func @told(%x: memref<32x1xf32>, %y: memref<32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %t = memref.alloca() : memref<f32>
  scf.for %j = %c0 to %c32 step %c1 {
    %v = memref.load %x[%j, %c0] : memref<32x1xf32>
    %p = arith.mulf %v, %v : f32
    memref.store %p, %t[] : memref<f32>
    %q = memref.load %t[] : memref<f32>
    memref.store %q, %y[%j] : memref<32xf32>
  }
  return
}

// -----

// The border of an array takes little time beside the rest: where it can't be gathered it stays scalar, and LLVM's
// vectoriser is not asked.
// CHECK-LABEL: func.func @border
// CHECK: vector.gather
// NARROW-LABEL: func.func @border
// NARROW: vector.store
// NARROW: memref.load %arg0[%{{.*}}, %c0{{.*}}]
// NARROW-NEXT: math.sqrt
func.func @border(%x: memref<32x640xf32>, %y: memref<32x640xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c639 = arith.constant 639 : index
  scf.for %i = %c0 to %c32 step %c1 {
    scf.for %j = %c1 to %c639 step %c1 {
      %v = memref.load %x[%i, %j] : memref<32x640xf32>
      %r = math.sqrt %v : f32
      memref.store %r, %y[%i, %j] : memref<32x640xf32>
    }
  }
  scf.for %i = %c0 to %c32 step %c1 {
    %v = memref.load %x[%i, %c0] : memref<32x640xf32>
    %r = math.sqrt %v : f32
    memref.store %r, %y[%i, %c0] : memref<32x640xf32>
  }
  return
}

// -----

// What is stored where a table says may be stored twice at one place: no vectoriser does that.
// CHECK: module attributes {lamina.simplify, lamina.vectors} {
// CHECK-NEXT: func.func @to_table
// CHECK-NOT: vector.
func.func @to_table(%x: memref<32xf32>, %at: memref<32xi32>, %y: memref<40xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c39 = arith.constant 39 : index
  scf.for %j = %c0 to %c32 step %c1 {
    %i = memref.load %at[%j] : memref<32xi32>
    %k = arith.index_cast %i : i32 to index
    %in = arith.cmpi ule, %k, %c39 : index
    scf.if %in {
      %v = memref.load %x[%j] : memref<32xf32>
      %w = memref.load %y[%k] : memref<40xf32>
      %s = arith.addf %v, %w : f32
      memref.store %s, %y[%k] : memref<40xf32>
    }
  }
  return
}

// -----

// Long copies are the C library's.
// CHECK-LABEL: func.func @copy
// CHECK-NOT: vector.load
func.func @copy(%x: memref<2048xf32>, %y: memref<2048xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2048 = arith.constant 2048 : index
  scf.for %j = %c0 to %c2048 step %c1 {
    %v = memref.load %x[%j] : memref<2048xf32>
    memref.store %v, %y[%j] : memref<2048xf32>
  }
  return
}

// -----

// Short ones are not: a call takes longer.
// CHECK-LABEL: func.func @short_copy
// CHECK: vector.load
func.func @short_copy(%x: memref<32xf32>, %y: memref<32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  scf.for %j = %c0 to %c32 step %c1 {
    %v = memref.load %x[%j] : memref<32xf32>
    memref.store %v, %y[%j] : memref<32xf32>
  }
  return
}

// -----

// What is divided by one number is multiplied by its inverse and corrected, unless numbers are far
// from 1. A few vectors are divided.
// CHECK-LABEL: func.func @quotients
// CHECK: %[[S:.*]] = memref.load %arg2[]
// CHECK: %[[B:.*]] = vector.broadcast %[[S]] : f32 to vector<16xf32>
// CHECK: %[[ONCE:.*]] = arith.divf %{{.*}}, %[[S]] : f32
// CHECK: %[[Y:.*]] = vector.broadcast %[[ONCE]] : f32 to vector<16xf32>
// CHECK: scf.for
// CHECK-COUNT-4: vector.load
// CHECK: vector.reduction <or>
// CHECK: scf.if
// CHECK-COUNT-4: arith.divf %{{.*}}, %[[B]] : vector<16xf32>
// CHECK: } else {
// CHECK: %[[Q:.*]] = arith.mulf %{{.*}}, %[[Y]] : vector<16xf32>
// CHECK: %[[N:.*]] = arith.negf %[[Q]]
// CHECK: %[[R:.*]] = math.fma %[[N]], %[[B]], %[[X:.*]] : vector<16xf32>
// CHECK: math.fma %[[R]], %[[Y]], %[[Q]] : vector<16xf32>
// CHECK: func.func @few_quotients
// CHECK-NOT: math.fma
// NARROW-LABEL: func.func @quotients
// NARROW-NOT: math.fma
func.func @quotients(%x: memref<640xf32>, %y: memref<640xf32>, %s: memref<f32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c640 = arith.constant 640 : index
  scf.for %j = %c0 to %c640 step %c1 {
    %v = memref.load %x[%j] : memref<640xf32>
    %u = memref.load %s[] : memref<f32>
    %q = arith.divf %v, %u : f32
    memref.store %q, %y[%j] : memref<640xf32>
  }
  return
}

func.func @few_quotients(%x: memref<40xf32>, %y: memref<40xf32>, %s: memref<f32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c40 = arith.constant 40 : index
  scf.for %j = %c0 to %c40 step %c1 {
    %v = memref.load %x[%j] : memref<40xf32>
    %u = memref.load %s[] : memref<f32>
    %q = arith.divf %v, %u : f32
    memref.store %q, %y[%j] : memref<40xf32>
  }
  return
}

// -----

// Beside a loop that is not plain, only one that rounds as the processor does, and no other of bf16.
// BESIDE-LABEL: func.func @rounding
// BESIDE: vector.store
// CHECK-LABEL: func.func @rounding
// CHECK: %[[R:.*]] = arith.truncf %{{.*}} {lamina.native} : vector<16xf32> to vector<16xbf16>
// CHECK: vector.store %[[R]], %arg1
// CHECK: memref.load %arg0
// CHECK: arith.truncf %{{.*}} : f32 to bf16
// CHECK: memref.store
func.func @rounding(%x: memref<32xf32>, %y: memref<32xbf16>, %z: memref<32xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c31 = arith.constant 31 : index
  %c32 = arith.constant 32 : index
  scf.for %j = %c0 to %c32 step %c1 {
    %v = memref.load %x[%j] : memref<32xf32>
    %r = arith.truncf %v {lamina.native} : f32 to bf16
    memref.store %r, %y[%j] : memref<32xbf16>
  }
  scf.for %j = %c0 to %c32 step %c1 {
    %v = memref.load %x[%j] : memref<32xf32>
    %r = arith.truncf %v : f32 to bf16
    %k = arith.xori %c31, %j : index
    memref.store %r, %z[%k] : memref<32xbf16>
  }
  return
}

// -----

// Numbers of bf16 are moved as such and widened lane by lane, whoever rounds them.
// CHECK-LABEL: func.func @bf16
// CHECK: %[[V:.*]] = vector.load %arg0[%{{.*}}] : memref<64xbf16>, vector<16xbf16>
// CHECK: %[[W:.*]] = arith.extf %[[V]] : vector<16xbf16> to vector<16xf32>
// CHECK: %[[R:.*]] = arith.truncf %[[W]] : vector<16xf32> to vector<16xbf16>
// CHECK: vector.store %[[R]], %arg1
func.func @bf16(%x: memref<64xbf16>, %y: memref<64xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  scf.for %j = %c0 to %c64 step %c1 {
    %v = memref.load %x[%j] : memref<64xbf16>
    %w = arith.extf %v : bf16 to f32
    %r = arith.truncf %w : f32 to bf16
    memref.store %r, %y[%j] : memref<64xbf16>
  }
  return
}

// -----

// Truths are vectors of bits, which memory has as bytes.
// CHECK-LABEL: func.func @masked_maximum
// CHECK: %[[M:.*]] = vector.load %arg1[%{{.*}}] : memref<64xi1>, vector<16xi1>
// CHECK: arith.select %[[M]], %{{.*}}, %{{.*}} : vector<16xi1>, vector<16xf32>
// CHECK: vector.store %{{.*}}, %arg2[%{{.*}}] : memref<64xi1>, vector<16xi1>
// CHECK: vector.reduction <maximumf>
func.func @masked_maximum(%x: memref<64xf32>, %m: memref<64xi1>, %n: memref<64xi1>) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %least = arith.constant 0xFF800000 : f32
  %r = scf.for %j = %c0 to %c64 step %c1 iter_args(%held = %least) -> f32 {
    %v = memref.load %x[%j] : memref<64xf32>
    %t = memref.load %m[%j] : memref<64xi1>
    %s = arith.select %t, %v, %least : f32
    %u = arith.cmpf ogt, %v, %least : f32
    memref.store %u, %n[%j] : memref<64xi1>
    %g = arith.maximumf %held, %s fastmath<nsz> : f32
    scf.yield %g : f32
  }
  return %r : f32
}

// -----

// Of a long chain each op waits for the one before: as many vectors as fill the wait are worked on op by op,
// and LLVM is asked to keep that order.
// CHECK: module attributes {lamina.in_order, lamina.vectors}
// CHECK-LABEL: func.func @long_chain
// CHECK: scf.for {{.*}} step %c128
// CHECK-COUNT-8: vector.load
// CHECK-NOT: vector.load
// CHECK-COUNT-8: arith.addf {{.*}} : vector<16xf32>
// CHECK-NEXT: math.absf
// CHECK-COUNT-7: math.absf
// CHECK-NEXT: arith.addf
// CHECK: vector.maskedload
// NARROW-LABEL: func.func @long_chain
// NARROW: scf.for {{.*}} step %c64
// NARROW-COUNT-8: vector.load
// AHEAD-LABEL: func.func @long_chain
// AHEAD: scf.for %[[AT:.*]] = %{{.*}} step %c128
// AHEAD: vector.load %arg0[%[[AT]]] :
// AHEAD-NEXT: %c512{{.*}} = arith.constant 512 : index
// AHEAD-NEXT: %[[FAR:.*]] = arith.addi %[[AT]], %c512
// AHEAD-NEXT: memref.prefetch %arg0[%[[FAR]]], read, locality<3>, data : memref<?xf32>
// AHEAD: vector.store
// AHEAD: memref.prefetch %arg1[{{.*}}], write
// AHEAD: vector.maskedload
// AHEAD-NOT: prefetch
// AHEAD-LABEL: func.func @wide
func.func @long_chain(%x: memref<?xf32>, %y: memref<?xf32>, %low: index, %high: index) {
  %c1 = arith.constant 1 : index
  %c = arith.constant 2.0 : f32
  scf.for %i = %low to %high step %c1 {
    %v = memref.load %x[%i] : memref<?xf32>
    %a0 = arith.addf %v, %c : f32
    %m0 = math.absf %a0 : f32
    %a1 = arith.addf %m0, %c : f32
    %m1 = math.absf %a1 : f32
    %a2 = arith.addf %m1, %c : f32
    %m2 = math.absf %a2 : f32
    %a3 = arith.addf %m2, %c : f32
    %m3 = math.absf %a3 : f32
    %a4 = arith.addf %m3, %c : f32
    %m4 = math.absf %a4 : f32
    %a5 = arith.addf %m4, %c : f32
    %m5 = math.absf %a5 : f32
    %a6 = arith.addf %m5, %c : f32
    %m6 = math.absf %a6 : f32
    %a7 = arith.addf %m6, %c : f32
    %m7 = math.absf %a7 : f32
    %a8 = arith.addf %m7, %c : f32
    %m8 = math.absf %a8 : f32
    %a9 = arith.addf %m8, %c : f32
    %m9 = math.absf %a9 : f32
    %a10 = arith.addf %m9, %c : f32
    %m10 = math.absf %a10 : f32
    %a11 = arith.addf %m10, %c : f32
    %m11 = math.absf %a11 : f32
    %a12 = arith.addf %m11, %c : f32
    %m12 = math.absf %a12 : f32
    %a13 = arith.addf %m12, %c : f32
    %m13 = math.absf %a13 : f32
    %a14 = arith.addf %m13, %c : f32
    %m14 = math.absf %a14 : f32
    %a15 = arith.addf %m14, %c : f32
    %m15 = math.absf %a15 : f32
    %a16 = arith.addf %m15, %c : f32
    %m16 = math.absf %a16 : f32
    %a17 = arith.addf %m16, %c : f32
    %m17 = math.absf %a17 : f32
    %a18 = arith.addf %m17, %c : f32
    %m18 = math.absf %a18 : f32
    %a19 = arith.addf %m18, %c : f32
    %m19 = math.absf %a19 : f32
    memref.store %m19, %y[%i] : memref<?xf32>
  }
  return
}

// -----

// As long, but eight chains that do not wait for each other, of which a processor finds enough to do by itself;
// and what is alive at a time would not fit into the registers of more.
// CHECK: module attributes {lamina.vectors}
// CHECK-LABEL: func.func @wide
// CHECK: scf.for {{.*}} step %c16
// CHECK-COUNT-1: vector.load
// CHECK-NOT: vector.load
// CHECK: return
func.func @wide(%x: memref<?xf32>, %y: memref<?xf32>, %low: index, %high: index) {
  %c1 = arith.constant 1 : index
  %c = arith.constant 2.0 : f32
  scf.for %i = %low to %high step %c1 {
    %v = memref.load %x[%i] : memref<?xf32>
    %k0_0 = arith.maximumf %v, %c : f32
    %k1_0 = arith.maximumf %v, %c : f32
    %k2_0 = arith.maximumf %v, %c : f32
    %k3_0 = arith.maximumf %v, %c : f32
    %k4_0 = arith.maximumf %v, %c : f32
    %k5_0 = arith.maximumf %v, %c : f32
    %k6_0 = arith.maximumf %v, %c : f32
    %k7_0 = arith.maximumf %v, %c : f32
    %k0_1 = arith.maximumf %k0_0, %c : f32
    %k1_1 = arith.maximumf %k1_0, %c : f32
    %k2_1 = arith.maximumf %k2_0, %c : f32
    %k3_1 = arith.maximumf %k3_0, %c : f32
    %k4_1 = arith.maximumf %k4_0, %c : f32
    %k5_1 = arith.maximumf %k5_0, %c : f32
    %k6_1 = arith.maximumf %k6_0, %c : f32
    %k7_1 = arith.maximumf %k7_0, %c : f32
    %k0_2 = arith.maximumf %k0_1, %c : f32
    %k1_2 = arith.maximumf %k1_1, %c : f32
    %k2_2 = arith.maximumf %k2_1, %c : f32
    %k3_2 = arith.maximumf %k3_1, %c : f32
    %k4_2 = arith.maximumf %k4_1, %c : f32
    %k5_2 = arith.maximumf %k5_1, %c : f32
    %k6_2 = arith.maximumf %k6_1, %c : f32
    %k7_2 = arith.maximumf %k7_1, %c : f32
    %k0_3 = arith.maximumf %k0_2, %c : f32
    %k1_3 = arith.maximumf %k1_2, %c : f32
    %k2_3 = arith.maximumf %k2_2, %c : f32
    %k3_3 = arith.maximumf %k3_2, %c : f32
    %k4_3 = arith.maximumf %k4_2, %c : f32
    %k5_3 = arith.maximumf %k5_2, %c : f32
    %k6_3 = arith.maximumf %k6_2, %c : f32
    %k7_3 = arith.maximumf %k7_2, %c : f32
    %k0_4 = arith.maximumf %k0_3, %c : f32
    %k1_4 = arith.maximumf %k1_3, %c : f32
    %k2_4 = arith.maximumf %k2_3, %c : f32
    %k3_4 = arith.maximumf %k3_3, %c : f32
    %k4_4 = arith.maximumf %k4_3, %c : f32
    %k5_4 = arith.maximumf %k5_3, %c : f32
    %k6_4 = arith.maximumf %k6_3, %c : f32
    %k7_4 = arith.maximumf %k7_3, %c : f32
    %k0_5 = arith.maximumf %k0_4, %c : f32
    %k1_5 = arith.maximumf %k1_4, %c : f32
    %k2_5 = arith.maximumf %k2_4, %c : f32
    %k3_5 = arith.maximumf %k3_4, %c : f32
    %k4_5 = arith.maximumf %k4_4, %c : f32
    %k5_5 = arith.maximumf %k5_4, %c : f32
    %k6_5 = arith.maximumf %k6_4, %c : f32
    %k7_5 = arith.maximumf %k7_4, %c : f32
    %r1 = arith.minimumf %k0_5, %k1_5 : f32
    %r2 = arith.minimumf %r1, %k2_5 : f32
    %r3 = arith.minimumf %r2, %k3_5 : f32
    %r4 = arith.minimumf %r3, %k4_5 : f32
    %r5 = arith.minimumf %r4, %k5_5 : f32
    %r6 = arith.minimumf %r5, %k6_5 : f32
    %r7 = arith.minimumf %r6, %k7_5 : f32
    memref.store %r7, %y[%i] : memref<?xf32>
  }
  return
}

// -----

// A few numbers that are computed anew in each iteration around, and then replaced.
// CHECK-LABEL: func.func @replaced
// CHECK: vector.store {{.*}} : memref<8xf32>, vector<8xf32>
// CHECK: vector.load {{.*}} : memref<8xf32>, vector<8xf32>
// CHECK: math.rsqrt {{.*}} : vector<8xf32>
func.func @replaced(%x: memref<64x8xf32>, %y: memref<64x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %t = memref.alloca() : memref<8xf32>
  scf.for %i = %c0 to %c64 step %c1 {
    scf.for %j = %c0 to %c8 step %c1 {
      %v = memref.load %x[%i, %j] : memref<64x8xf32>
      %w = arith.mulf %v, %v : f32
      memref.store %w, %t[%j] : memref<8xf32>
    }
    scf.for %j = %c0 to %c8 step %c1 {
      %v = memref.load %t[%j] : memref<8xf32>
      %w = math.rsqrt %v : f32
      memref.store %w, %t[%j] : memref<8xf32>
    }
    scf.for %j = %c0 to %c8 step %c1 {
      %v = memref.load %t[%j] : memref<8xf32>
      memref.store %v, %y[%i, %j] : memref<64x8xf32>
    }
  }
  return
}

// -----

// Elements that lie apart are gathered and scattered, in loops that only move them, too, but for what the C
// library does faster.
// CHECK-LABEL: func.func @columns
// CHECK-NOT: vector.
// CHECK: return
// EVERYWHERE: module attributes {lamina.vectors}
// EVERYWHERE-LABEL: func.func @columns
// EVERYWHERE: %[[PLACES:.*]] = arith.constant dense<[0, 40, 80, 120, 160, 200, 240, 280]> : vector<8xi32>
// EVERYWHERE: %[[V:.*]] = vector.gather %arg0[%{{.*}}, %arg2] [%[[PLACES]]], {{.*}} : memref<8x40xf64>
// EVERYWHERE: vector.store %[[V]], %arg1[%{{.*}}]
// EVERYWHERE: %[[W:.*]] = vector.load %arg1[%{{.*}}]
// EVERYWHERE: vector.scatter %arg0[%{{.*}}, %arg2] [%{{.*}}], %{{.*}}, %[[W]]
// EVERYWHERE: memref.load %arg3[%[[I:.*]]]
// EVERYWHERE-NEXT: memref.store %{{.*}}, %arg4[%[[I]]]
func.func @columns(%x: memref<8x40xf64>, %y: memref<8xf64>, %column: index, %long: memref<1000xf64>,
                 %copy: memref<1000xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c1000 = arith.constant 1000 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %v = memref.load %x[%i, %column] : memref<8x40xf64>
    memref.store %v, %y[%i] : memref<8xf64>
  }
  scf.for %i = %c0 to %c8 step %c1 {
    %v = memref.load %y[%i] : memref<8xf64>
    memref.store %v, %x[%i, %column] : memref<8x40xf64>
  }
  scf.for %i = %c0 to %c1000 step %c1 {
    %v = memref.load %long[%i] : memref<1000xf64>
    memref.store %v, %copy[%i] : memref<1000xf64>
  }
  return
}

// -----

// Numbers of elements are counted on from the first vector's.
// CHECK-LABEL: func.func @numbers
// CHECK: arith.constant dense<[16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31]>
// CHECK: scf.for
// CHECK-COUNT-1: vector.broadcast
// CHECK-NOT: vector.broadcast
// CHECK-COUNT-2: vector.store
func.func @numbers(%y: memref<640xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c640 = arith.constant 640 : index
  scf.for %i = %c0 to %c640 step %c1 {
    %n = arith.index_cast %i : index to i32
    memref.store %n, %y[%i] : memref<640xi32>
  }
  return
}

// -----

// What stays the same is read in front of a loop that may do nothing, if it is one of its buffer's elements
// for certain. Where all loops are long, they need no others over vectors beside them.
// CHECK-LABEL: func.func @known_to_be_there
// CHECK: scf.for %[[I:.*]] = %c0
// CHECK: %[[S:.*]] = memref.load %arg1
// CHECK: scf.for
// CHECK: vector.load
// BESIDE-LABEL: func.func @known_to_be_there
// BESIDE: vector.load
func.func @known_to_be_there(%x: memref<100x500xf32>, %s: memref<400xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c100 = arith.constant 100 : index
  scf.for %i = %c0 to %c100 step %c1 {
    %four = arith.muli %i, %c4 : index
    %at = arith.addi %four, %c3 : index
    scf.for %j = %c0 to %n step %c1 {
      %v = memref.load %x[%i, %j] : memref<100x500xf32>
      %u = memref.load %s[%at] : memref<400xf32>
      %p = arith.mulf %v, %u : f32
      memref.store %p, %x[%i, %j] : memref<100x500xf32>
    }
  }
  return
}

// -----

// A few vectors of a longer body need no loop where a loop around may keep them in registers; elsewhere
// they would only be more code.
// CHECK-LABEL: func.func @buffer_of_a_loop
// CHECK: scf.for %{{.*}} = %c0 to %c100
// CHECK: scf.for %{{.*}} step %c32
// EVERYWHERE-LABEL: func.func @buffer_of_a_loop
// EVERYWHERE: scf.for
// EVERYWHERE-NOT: scf.for
// EVERYWHERE-COUNT-4: vector.store
// EVERYWHERE: return
func.func @buffer_of_a_loop(%x: memref<64xf32>, %y: memref<64xf32>, %z: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c100 = arith.constant 100 : index
  scf.for %i = %c0 to %c100 step %c1 {
    scf.for %j = %c0 to %c64 step %c1 {
      %v = memref.load %x[%j] : memref<64xf32>
      %w = memref.load %y[%j] : memref<64xf32>
      %a = arith.mulf %v, %w : f32
      %b = arith.mulf %a, %v : f32
      %c = arith.subf %w, %b : f32
      %d = arith.mulf %c, %a : f32
      %e = arith.maximumf %d, %b : f32
      memref.store %e, %z[%j] : memref<64xf32>
    }
  }
  return
}

// -----

// CHECK-LABEL: func.func @perhaps_not_there
// CHECK-NOT: vector
// CHECK: return
func.func @perhaps_not_there(%x: memref<100x500xf32>, %s: memref<399xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c100 = arith.constant 100 : index
  scf.for %i = %c0 to %c100 step %c1 {
    %four = arith.muli %i, %c4 : index
    %at = arith.addi %four, %c3 : index
    scf.for %j = %c0 to %n step %c1 {
      %v = memref.load %x[%i, %j] : memref<100x500xf32>
      %u = memref.load %s[%at] : memref<399xf32>
      %p = arith.mulf %v, %u : f32
      memref.store %p, %x[%i, %j] : memref<100x500xf32>
    }
  }
  return
}

// -----

// What is read or written backwards lies side by side as well; the rest is done one by one.
// CHECK-LABEL: func.func @backwards
// CHECK: scf.for %[[J:.*]] = %c0
// CHECK: %[[AT:.*]] = arith.subi %c999, %[[J]] : index
// CHECK: %[[FIRST:.*]] = arith.addi %[[AT]], %c-15 : index
// CHECK: %[[V:.*]] = vector.load %arg0[%[[FIRST]]] : memref<1000xf32>, vector<16xf32>
// CHECK: vector.shuffle %[[V]], %[[V]] [15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]
// CHECK: vector.store %{{.*}}, %arg1[%[[J]]]
// CHECK: scf.for %{{.*}} = %c992{{.*}} to %c1000 step %c1
// CHECK: memref.load %arg0
func.func @backwards(%x: memref<1000xf32>, %y: memref<1000xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c999 = arith.constant 999 : index
  %c1000 = arith.constant 1000 : index
  scf.for %j = %c0 to %c1000 step %c1 {
    %k = arith.subi %c999, %j : index
    %v = memref.load %x[%k] : memref<1000xf32>
    %w = arith.mulf %v, %v : f32
    memref.store %w, %y[%j] : memref<1000xf32>
  }
  return
}

// -----

// Where gathers are slow, each lane loads from where its index says; division by a power of two is an op of vectors.
// CHECK-LABEL: func.func @looked_up
// CHECK-NOT: vector.load
// CHECK: return
// APART: module attributes {lamina.vectors}
// APART-LABEL: func.func @looked_up
// APART: %[[I:.*]] = vector.load %arg1[%{{.*}}] : memref<800xi64>, vector<4xi64>
// APART: %[[D:.*]] = arith.divsi %[[I]], %{{.*}} : vector<4xi64>
// APART: %[[K:.*]] = arith.index_cast %[[D]] : vector<4xi64> to vector<4xindex>
// APART: %[[A:.*]] = vector.extract %[[K]][0] : index from vector<4xindex>
// APART: vector.extract %[[K]][3]
// APART: %[[X:.*]] = memref.load %arg0[%[[A]], %arg3] : memref<100x8xf64>
// APART: vector.from_elements %[[X]], %{{.*}}, %{{.*}}, %{{.*}} : vector<4xf64>
func.func @looked_up(%x: memref<100x8xf64>, %i: memref<800xi64>, %y: memref<800xf64>, %column: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : i64
  %c800 = arith.constant 800 : index
  scf.for %j = %c0 to %c800 step %c1 {
    %n = memref.load %i[%j] : memref<800xi64>
    %d = arith.divsi %n, %c8 : i64
    %k = arith.index_cast %d : i64 to index
    %v = memref.load %x[%k, %column] : memref<100x8xf64>
    %a = math.exp %v : f64
    %b = arith.mulf %a, %v : f64
    %c = arith.subf %b, %a : f64
    memref.store %c, %y[%j] : memref<800xf64>
  }
  return
}

// -----

// A loop that does little to what it looks up is left to LLVM.
// APART-LABEL: func.func @moved
// APART-NOT: vector.load
// APART: return
func.func @moved(%x: memref<100xf64>, %i: memref<800xi64>, %y: memref<800xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c800 = arith.constant 800 : index
  scf.for %j = %c0 to %c800 step %c1 {
    %n = memref.load %i[%j] : memref<800xi64>
    %k = arith.index_cast %n : i64 to index
    %v = memref.load %x[%k] : memref<100xf64>
    memref.store %v, %y[%j] : memref<800xf64>
  }
  return
}

// -----

// The place is compared by how far the number is from the first lane: the lanes' numbers are constants. The number is
// taken no further than beyond the loop's bounds, so that nothing overflows.
// NARROW-LABEL: func.func @until
// NARROW-SAME: (%{{.*}}: memref<40xf64>, %{{.*}}: memref<40xf64>, %[[N:.*]]: i64)
// NARROW-DAG: %[[MOST:.*]] = arith.constant 40 : i64
// NARROW-DAG: %[[LEAST:.*]] = arith.constant -1 : i64
// NARROW: %[[BELOW:.*]] = arith.minsi %[[N]], %[[MOST]] : i64
// NARROW: %[[NEAR:.*]] = arith.maxsi %[[BELOW]], %[[LEAST]] : i64
// NARROW: scf.for
// NARROW: %[[AT:.*]] = arith.index_cast
// NARROW-NOT: arith.addi {{.*}} vector<4xi64>
// NARROW: %[[FAR:.*]] = arith.subi %[[NEAR]], %[[AT]] : i64
// NARROW: %[[ALL:.*]] = vector.broadcast %[[FAR]] : i64 to vector<4xi64>
// NARROW: arith.cmpi slt, %{{.*}}, %[[ALL]] : vector<4xi64>
func.func @until(%x: memref<40xf64>, %y: memref<40xf64>, %n: i64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c40 = arith.constant 40 : index
  %zero = arith.constant 0.0 : f64
  scf.for %j = %c0 to %c40 step %c1 {
    %v = memref.load %x[%j] : memref<40xf64>
    %i = arith.index_cast %j : index to i64
    %m = arith.cmpi slt, %i, %n : i64
    %k = arith.select %m, %v, %zero : f64
    %p = arith.mulf %k, %k : f64
    memref.store %p, %y[%j] : memref<40xf64>
  }
  return
}

// -----

// Nor is that a place of one element which an index finds.
// APART-LABEL: func.func @told_by_index
// APART: %[[V:.*]] = vector.from_elements
// APART-NOT: memref.load
// APART: arith.mulf %{{.*}}, %[[V]]
// APART: return
func.func @told_by_index(%x: memref<32x3xf32>, %w: memref<32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %t = memref.alloca() : memref<1xf32>
  scf.for %j = %c0 to %c32 step %c1 {
    %v = memref.load %x[%j, %c0] : memref<32x3xf32>
    memref.store %v, %t[%c0] : memref<1xf32>
    %u = memref.load %w[%j] : memref<32xf32>
    %q = memref.load %t[%zero] : memref<1xf32>
    %p = arith.mulf %u, %q : f32
    memref.store %p, %x[%j, %c0] : memref<32x3xf32>
  }
  return
}

// -----

// What an iteration reads where another has written, and every one does, is no number that stays the same.
// APART-LABEL: func.func @same_place
// APART: scf.for
// APART-NOT: vector<
// APART: return
func.func @same_place(%x: memref<32x3xf32>, %w: memref<32xf32>, %t: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  scf.for %j = %c0 to %c32 step %c1 {
    %v = memref.load %x[%j, %c0] : memref<32x3xf32>
    memref.store %v, %t[%c1] : memref<4xf32>
    %u = memref.load %w[%j] : memref<32xf32>
    %q = memref.load %t[%c1] : memref<4xf32>
    %p = arith.mulf %u, %q : f32
    memref.store %p, %w[%j] : memref<32xf32>
  }
  return
}

// -----

// A sum of 63 in vectors of 4, of which four are added side by side: three times, then the three whole vectors
// that remain, each to a sum of its own, then three elements one by one.
// APART-LABEL: func.func @whole_vectors_that_remain
// APART: scf.for %{{.*}} = %c0{{.*}} to %c48{{.*}} step %c16
// APART-COUNT-4: vector.load
// APART: scf.yield
// APART-COUNT-3: vector.load
// APART-NOT: vector.load
// APART: scf.for %{{.*}} = %c60{{.*}} to %c63
// APART-NEXT: memref.load
// APART: return
func.func @whole_vectors_that_remain(%x: memref<63xf64>) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %zero = arith.constant 0.0 : f64
  %sum = scf.for %i = %c0 to %c63 step %c1 iter_args(%s = %zero) -> (f64) {
    %v = memref.load %x[%i] : memref<63xf64>
    %n = arith.addf %s, %v fastmath<reassoc> : f64
    scf.yield %n : f64
  }
  return %sum : f64
}

// -----

// As many as nobody knows: the same, the whole vectors that remain in a loop. None where there is nothing to add.
// APART-LABEL: func.func @of_any_length
// APART: scf.for {{.*}} step %c16
// APART-COUNT-4: vector.load
// APART: scf.yield
// APART: arith.maxsi
// APART: arith.andi {{.*}}, %c-4
// APART: scf.for {{.*}} step %c4
// APART-COUNT-1: vector.load
// APART: scf.yield
// APART: scf.for
// APART-NEXT: memref.load
// APART: return
func.func @of_any_length(%x: memref<?xf64>, %low: index, %high: index) -> f64 {
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %sum = scf.for %i = %low to %high step %c1 iter_args(%s = %zero) -> (f64) {
    %v = memref.load %x[%i] : memref<?xf64>
    %n = arith.addf %s, %v fastmath<reassoc> : f64
    scf.yield %n : f64
  }
  return %sum : f64
}

// -----

// Rows of two elements are loaded whole and dealt into columns; a row is stored once both are there.
// NARROW-LABEL: func.func @rows_of_two
// NARROW: scf.for %[[I:.*]] =
// NARROW: %[[NEXT:.*]] = arith.addi %[[I]], %c4{{.*}} : index
// NARROW-NEXT: %[[A:.*]] = vector.load %arg0[%[[I]], %c0{{.*}}] : memref<64x2xf32>, vector<8xf32>
// NARROW-NEXT: %[[B:.*]] = vector.load %arg0[%[[NEXT]], %c0{{.*}}] : memref<64x2xf32>, vector<8xf32>
// NARROW-NEXT: %[[X:.*]] = vector.shuffle %[[A]], %[[B]] [0, 2, 4, 6, 8, 10, 12, 14]
// NARROW-NEXT: %[[Y:.*]] = vector.shuffle %[[A]], %[[B]] [1, 3, 5, 7, 9, 11, 13, 15]
// NARROW: %[[S:.*]] = arith.addf %[[X]], %[[Y]]
// NARROW: %[[D:.*]] = arith.subf %[[X]], %[[Y]]
// NARROW: vector.shuffle %[[S]], %[[D]] [0, 8, 1, 9, 2, 10, 3, 11]
// NARROW-NEXT: vector.shuffle %[[S]], %[[D]] [4, 12, 5, 13, 6, 14, 7, 15]
// NARROW: vector.store
// NARROW: vector.store
func.func @rows_of_two(%x: memref<64x2xf32>, %y: memref<64x2xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c64 step %c1 {
    %a = memref.load %x[%i, %c0] : memref<64x2xf32>
    %b = memref.load %x[%i, %c1] : memref<64x2xf32>
    %s = arith.addf %a, %b : f32
    memref.store %s, %y[%i, %c0] : memref<64x2xf32>
    %d = arith.subf %a, %b : f32
    memref.store %d, %y[%i, %c1] : memref<64x2xf32>
  }
  return
}

// -----

// One column of two that is stored leaves the other as it is.
// NARROW-LABEL: func.func @one_of_two
// NARROW-NOT: vector.shuffle
func.func @one_of_two(%x: memref<64x2xf32>, %y: memref<64x2xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c64 step %c1 {
    %a = memref.load %x[%i, %c0] : memref<64x2xf32>
    memref.store %a, %y[%i, %c1] : memref<64x2xf32>
  }
  return
}

// -----

// So do columns that are written one by one; the loop is a reduction then. What may be another place of theirs
// keeps them in memory.
// NARROW-LABEL: func.func @places
// CHECK-LABEL: func.func @places
// CHECK: memref.load %arg1[%c0] : memref<2xf32>
// CHECK: memref.load %arg1[%c1] : memref<2xf32>
// CHECK: arith.addf {{.*}} : vector<16xf32>
// CHECK: memref.store {{.*}}, %arg1[%c0]
// CHECK: memref.store {{.*}}, %arg1[%c1]
// CHECK: scf.for
// CHECK: memref.load %arg1[%c0]
// CHECK: memref.load %arg1[%arg2]
// CHECK: memref.store {{.*}}, %arg1[%c0]
func.func @places(%x: memref<64x2xf32>, %s: memref<2xf32>, %at: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c64 step %c1 {
    %a = memref.load %s[%c0] : memref<2xf32>
    %v = memref.load %x[%i, %c0] : memref<64x2xf32>
    %b = arith.addf %a, %v fastmath<reassoc> : f32
    memref.store %b, %s[%c0] : memref<2xf32>
    %c = memref.load %s[%c1] : memref<2xf32>
    %w = memref.load %x[%i, %c1] : memref<64x2xf32>
    %d = arith.addf %c, %w fastmath<reassoc> : f32
    memref.store %d, %s[%c1] : memref<2xf32>
  }
  scf.for %i = %c0 to %c64 step %c1 {
    %a = memref.load %s[%c0] : memref<2xf32>
    %v = memref.load %s[%at] : memref<2xf32>
    %b = arith.addf %a, %v fastmath<reassoc> : f32
    memref.store %b, %s[%c0] : memref<2xf32>
  }
  return
}

// -----

// Ten columns are a vector and a masked one; where nothing has masks, they are LLVM's.
// CHECK-LABEL: func.func @ten_columns
// CHECK: scf.for {{.*}} -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>,
// CHECK: vector.maskedload %arg0
// CHECK: vector.maskedstore %arg1
// NARROW-LABEL: func.func @ten_columns
// NARROW-NOT: vector<
func.func @ten_columns(%x: memref<32x10xf32>, %y: memref<10xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c10 = arith.constant 10 : index
  %c32 = arith.constant 32 : index
  scf.for %i = %c0 to %c32 step %c1 {
    scf.for %j = %c0 to %c10 step %c1 {
      %s = memref.load %y[%j] : memref<10xf32>
      %v = memref.load %x[%i, %j] : memref<32x10xf32>
      %t = arith.addf %s, %v fastmath<reassoc> : f32
      memref.store %t, %y[%j] : memref<10xf32>
    }
  }
  return
}
