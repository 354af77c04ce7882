// RUN: %lamina-opt %s --pass-pipeline='math-widen-bf16{features=amx-bf16+avx512bf16}' | FileCheck %s
// RUN: %lamina-opt %s --pass-pipeline=math-widen-bf16 | FileCheck %s --check-prefix=PLAIN

// CHECK-LABEL: func.func @product
// CHECK: %[[X:.*]] = arith.extf %arg0 : bf16 to f32
// CHECK: %[[Y:.*]] = arith.extf %arg1 : bf16 to f32
// CHECK: %[[Z:.*]] = arith.mulf %[[X]], %[[Y]] : f32
// CHECK: arith.truncf %[[Z]] {lamina.native} : f32 to bf16
// PLAIN-LABEL: func.func @product
// PLAIN: arith.truncf %{{.*}} : f32 to bf16
func.func @product(%a: bf16, %b: bf16) -> bf16 {
  %0 = arith.mulf %a, %b : bf16
  return %0 : bf16
}

// What was loaded may be a denormal, also where it is chosen; a constant that is none is seen to be none.
// CHECK-LABEL: func.func @rounded
// CHECK: arith.truncf %arg0 : f32 to bf16
// CHECK: %[[CHOSEN:.*]] = arith.select %arg1, %{{.*}}, %arg0
// CHECK: arith.truncf %[[CHOSEN]] : f32 to bf16
// CHECK: %[[MADE:.*]] = arith.select
// CHECK: arith.truncf %[[MADE]] {lamina.native} : f32 to bf16
func.func @rounded(%x: f32, %p: i1) -> (bf16, bf16, bf16) {
  %zero = arith.constant 0.0 : f32
  %0 = arith.truncf %x : f32 to bf16
  %sum = arith.addf %x, %x : f32
  %1 = arith.select %p, %sum, %x : f32
  %2 = arith.truncf %1 : f32 to bf16
  %3 = arith.select %p, %sum, %zero : f32
  %4 = arith.truncf %3 : f32 to bf16
  return %0, %2, %4 : bf16, bf16, bf16
}

// One of the operands is no more than bf16 holds; nor is a byte, which is not even made one on the way.
// CHECK-LABEL: func.func @has_few_bits
// CHECK: %[[MOST:.*]] = arith.maximumf
// CHECK-NEXT: %[[BITS:.*]] = arith.bitcast %[[MOST]] : f32 to i32
// CHECK: %[[HIGH:.*]] = arith.shrui %[[BITS]]
// CHECK-NEXT: %[[CUT:.*]] = arith.trunci %[[HIGH]] : i32 to i16
// CHECK-NEXT: arith.bitcast %[[CUT]] : i16 to bf16
// CHECK: arith.sitofp %arg2 : i8 to f32
// CHECK: %[[BYTE:.*]] = arith.sitofp %arg2 : i8 to f32
// CHECK: return %{{.*}}, %[[BYTE]]
func.func @has_few_bits(%a: bf16, %b: bf16, %c: i8) -> (bf16, f32) {
  %0 = arith.maximumf %a, %b : bf16
  %1 = arith.sitofp %c : i8 to bf16
  %2 = arith.extf %1 : bf16 to f32
  return %0, %2 : bf16, f32
}

// CHECK-LABEL: func.func @of_large_integers
// CHECK: %[[WIDE:.*]] = arith.sitofp %arg0 : i64 to f64
// CHECK: arith.truncf %[[WIDE]] : f64 to bf16
func.func @of_large_integers(%a: i64) -> bf16 {
  %0 = arith.sitofp %a : i64 to bf16
  return %0 : bf16
}

// CHECK-LABEL: func.func @leaves_alone
// CHECK: arith.addf %arg0, %arg0 : vector<16xbf16>
// CHECK-NEXT: arith.select %arg1, %arg2, %arg3 : bf16
// CHECK-NEXT: arith.truncf %arg3 : bf16 to f8E5M2
// CHECK-NEXT: return
func.func @leaves_alone(%v: vector<16xbf16>, %p: i1, %a: bf16, %b: bf16) -> (vector<16xbf16>, bf16, f8E5M2) {
  %0 = arith.addf %v, %v : vector<16xbf16>
  %1 = arith.select %p, %a, %b : bf16
  %2 = arith.truncf %b : bf16 to f8E5M2
  return %0, %1, %2 : vector<16xbf16>, bf16, f8E5M2
}
