// RUN: %lamina-opt %s --pass-pipeline=math-divide-by-floats | FileCheck %s
// RUN: %lamina-opt %s --pass-pipeline='math-divide-by-floats{vector-bits=512}' | FileCheck %s --check-prefix=WIDE

// CHECK-LABEL: func.func @remainder
// CHECK: %[[A:.*]] = memref.load %arg0
// CHECK: %[[B:.*]] = memref.load %arg1
// CHECK: %[[WORD:.*]] = arith.extsi %[[A]] : i8 to i32
// CHECK: %[[X:.*]] = arith.sitofp %[[WORD]] : i32 to f32
// CHECK: %[[Y:.*]] = arith.sitofp
// CHECK: %[[EXACT:.*]] = arith.divf %[[X]], %[[Y]] : f32
// CHECK: %[[Q:.*]] = llvm.fptosi %[[EXACT]] : f32 to i32
// CHECK: %[[WHOLE:.*]] = arith.sitofp %[[Q]] : i32 to f32
// CHECK: %[[PRODUCT:.*]] = arith.mulf %[[WHOLE]], %[[Y]] : f32
// CHECK: %[[REST:.*]] = arith.subf %[[X]], %[[PRODUCT]] : f32
// CHECK: %[[R:.*]] = llvm.fptosi %[[REST]] : f32 to i32
// CHECK: arith.trunci %[[R]] : i32 to i8
func.func @remainder(%x: memref<9xi8>, %y: memref<9xi8>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %a = memref.load %x[%i] : memref<9xi8>
    %b = memref.load %y[%i] : memref<9xi8>
    %r = arith.remsi %a, %b : i8
    memref.store %r, %x[%i] : memref<9xi8>
  }
  return
}

// What an iteration leaves for itself is none that the next one waits for.
// CHECK-LABEL: func.func @unsigned
// CHECK: arith.extui %{{.*}} : i16 to i32
// CHECK: arith.divf %{{.*}} : f32
// CHECK: arith.uitofp %{{.*}} : i32 to f64
// CHECK: arith.divf %{{.*}} : f64
// CHECK: llvm.fptoui %{{.*}} : f64 to i32
func.func @unsigned(%x: memref<9xi16>, %y: memref<9xi32>, %own: memref<i16>, %n: index, %by: i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %a = memref.load %x[%i] : memref<9xi16>
    memref.store %a, %own[] : memref<i16>
    %b = memref.load %own[] : memref<i16>
    %q = arith.divui %a, %b : i16
    memref.store %q, %x[%i] : memref<9xi16>
    %c = memref.load %y[%i] : memref<9xi32>
    %d = arith.divui %c, %by : i32
    memref.store %d, %y[%i] : memref<9xi32>
  }
  return
}

// Of 64 bits only with vectors of 512.
// CHECK-LABEL: func.func @wide
// CHECK-NOT: divf
// WIDE-LABEL: func.func @wide
// WIDE-DAG: %[[A:.*]] = memref.load %arg0
// WIDE-DAG: %[[B:.*]] = memref.load %arg1
// WIDE: %[[Y:.*]] = arith.uitofp %[[B]] : i64 to f64
// WIDE: %[[SCALE:.*]] = arith.divf %{{.*}}, %[[Y]] : f64
// WIDE: %[[X:.*]] = arith.uitofp %[[A]] : i64 to f64
// WIDE: %[[ABOUT:.*]] = arith.mulf %[[X]], %[[SCALE]] : f64
// WIDE: %[[Q:.*]] = llvm.fptoui %[[ABOUT]] : f64 to i64
// WIDE: %[[PRODUCT:.*]] = arith.muli %[[Q]], %[[B]] : i64
// WIDE: %[[REST:.*]] = arith.subi %[[A]], %[[PRODUCT]] : i64
// WIDE: %[[MORE:.*]] = llvm.fptoui %{{.*}} : f64 to i64
// WIDE: %[[SUM:.*]] = arith.addi %[[Q]], %[[MORE]] : i64
// WIDE: %[[LESS:.*]] = arith.cmpi ult, %{{.*}}, %[[B]] : i64
// WIDE: arith.select %[[LESS]], %[[SUM]], %{{.*}} : i64
// WIDE: arith.shrsi
// WIDE: arith.divf
// WIDE-NOT: arith.remsi
// WIDE: return
func.func @wide(%x: memref<9xi64>, %y: memref<9xi64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %a = memref.load %x[%i] : memref<9xi64>
    %b = memref.load %y[%i] : memref<9xi64>
    %q = arith.divui %a, %b : i64
    memref.store %q, %x[%i] : memref<9xi64>
    %r = arith.remsi %a, %b : i64
    memref.store %r, %y[%i] : memref<9xi64>
  }
  return
}

// By constants, of wide integers and indices.
// CHECK-LABEL: func.func @other_divisions
// CHECK-NOT: divf
func.func @other_divisions(%x: memref<9xi8>, %y: memref<9xi64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : i8
  scf.for %i = %c0 to %n step %c1 {
    %a = memref.load %x[%i] : memref<9xi8>
    %r = arith.remsi %a, %c7 : i8
    memref.store %r, %x[%i] : memref<9xi8>
    %at = arith.divui %i, %n : index
    %b = memref.load %y[%at] : memref<9xi64>
    %q = arith.divsi %b, %b : i64
    memref.store %q, %y[%i] : memref<9xi64>
  }
  return
}

// One division of the number of a place, or what is made of it, whatever the divisor; two of what may be wider.
// WIDE-LABEL: func.func @places
// WIDE: scf.for
// WIDE-COUNT-1: arith.divf
// WIDE: arith.subf
// WIDE: llvm.fptosi {{.*}} : f64 to i64
// WIDE: scf.for
// WIDE: arith.shrsi
// WIDE-COUNT-1: arith.divf
func.func @places(%y: memref<9xi64>, %n: index, %by: i64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : i64
  scf.for %i = %c0 to %n step %c1 {
    %a = arith.index_cast %i : index to i64
    %b = arith.muli %a, %c3 : i64
    %r = arith.remsi %b, %by : i64
    memref.store %r, %y[%i] : memref<9xi64>
  }
  scf.for %i = %c0 to %n step %c1 {
    %a = arith.index_cast %i : index to i64
    %b = arith.muli %a, %by : i64
    %r = arith.remsi %b, %by : i64
    memref.store %r, %y[%i] : memref<9xi64>
  }
  return
}

// Where one waits for the one before: in a value, one element, the element before. And outside of loops.
// CHECK-LABEL: func.func @chains
// CHECK-NOT: divf
func.func @chains(%x: memref<9xi8>, %last: memref<i8>, %n: index, %first: i8) -> i8 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = scf.for %i = %c0 to %n step %c1 iter_args(%c = %first) -> (i8) {
    %a = memref.load %x[%i] : memref<9xi8>
    %sum = arith.addi %a, %c : i8
    %r = arith.remsi %first, %sum : i8
    scf.yield %r : i8
  }
  scf.for %i = %c0 to %n step %c1 {
    %a = memref.load %last[] : memref<i8>
    %r = arith.remsi %first, %a : i8
    memref.store %r, %last[] : memref<i8>
  }
  scf.for %i = %c1 to %n step %c1 {
    %at = arith.subi %i, %c1 : index
    %a = memref.load %x[%at] : memref<9xi8>
    %r = arith.remsi %a, %first : i8
    memref.store %r, %x[%i] : memref<9xi8>
  }
  %r = arith.remsi %end, %first : i8
  return %r : i8
}
