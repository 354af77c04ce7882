// RUN: %lamina-opt %s --pass-pipeline=llvm-elements-as-bytes | FileCheck %s

// CHECK-LABEL: llvm.func @booleans
// CHECK: llvm.getelementptr %arg0[%arg1] : (!llvm.ptr, i64) -> !llvm.ptr, i8
// CHECK: %[[BYTE:.*]] = llvm.load %{{.*}} {alignment = 1 : i64} : !llvm.ptr -> i8
// CHECK: %[[BIT:.*]] = llvm.trunc %[[BYTE]] : i8 to i1
// CHECK: %[[WIDE:.*]] = llvm.zext %[[BIT]] : i1 to i8
// CHECK: llvm.store %[[WIDE]], %arg0 : i8, !llvm.ptr
llvm.func @booleans(%p: !llvm.ptr, %i: i64) {
  %0 = llvm.getelementptr %p[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i1
  %1 = llvm.load %0 {alignment = 1 : i64} : !llvm.ptr -> i1
  llvm.store %1, %p : i1, !llvm.ptr
  llvm.return
}

// CHECK-LABEL: llvm.func @vectors
// CHECK: %[[BYTES:.*]] = llvm.load %arg0 : !llvm.ptr -> vector<8xi8>
// CHECK: %[[BITS:.*]] = llvm.trunc %[[BYTES]] : vector<8xi8> to vector<8xi4>
// CHECK: %[[WIDE:.*]] = llvm.zext %[[BITS]] : vector<8xi4> to vector<8xi8>
// CHECK: llvm.store %[[WIDE]], %arg0 : vector<8xi8>, !llvm.ptr
llvm.func @vectors(%p: !llvm.ptr) {
  %0 = llvm.load %p : !llvm.ptr -> vector<8xi4>
  llvm.store %0, %p : vector<8xi4>, !llvm.ptr
  llvm.return
}

// CHECK-LABEL: llvm.func @others
// CHECK-NEXT: llvm.load %arg0 : !llvm.ptr -> i16
// CHECK-NEXT: llvm.store
llvm.func @others(%p: !llvm.ptr) {
  %0 = llvm.load %p : !llvm.ptr -> i16
  llvm.store %0, %p : i16, !llvm.ptr
  llvm.return
}

// CHECK-LABEL: llvm.func @masked
// CHECK: %[[ELSE:.*]] = llvm.zext %arg2 : vector<16xi1> to vector<16xi8>
// CHECK: %[[BYTES:.*]] = llvm.intr.masked.load %arg0, %arg1, %[[ELSE]] {alignment = 1 : i32} : (!llvm.ptr, vector<16xi1>, vector<16xi8>) -> vector<16xi8>
// CHECK: %[[BITS:.*]] = llvm.trunc %[[BYTES]] : vector<16xi8> to vector<16xi1>
// CHECK: %[[WIDE:.*]] = llvm.zext %[[BITS]] : vector<16xi1> to vector<16xi8>
// CHECK: llvm.intr.masked.store %[[WIDE]], %arg0, %arg1 {alignment = 1 : i32} : vector<16xi8>, vector<16xi1> into !llvm.ptr
llvm.func @masked(%p: !llvm.ptr, %mask: vector<16xi1>, %else: vector<16xi1>) {
  %0 = llvm.intr.masked.load %p, %mask, %else {alignment = 1 : i32} : (!llvm.ptr, vector<16xi1>, vector<16xi1>) -> vector<16xi1>
  llvm.intr.masked.store %0, %p, %mask {alignment = 1 : i32} : vector<16xi1>, vector<16xi1> into !llvm.ptr
  llvm.return
}
