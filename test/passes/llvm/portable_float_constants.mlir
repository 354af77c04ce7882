// RUN: %lamina-opt %s --pass-pipeline=llvm-portable-float-constants | FileCheck %s

// CHECK: llvm.mlir.global private constant @table(dense<[1036831949, 2139095040]> : tensor<2xi32>) {{.*}} : !llvm.array<2 x i32>
llvm.mlir.global private constant @table(dense<[0.1, 0x7F800000]> : tensor<2xf32>) : !llvm.array<2 x f32>

// CHECK: llvm.mlir.global private constant @small(dense<{{\[}}[16256, 32704], [-16320, 15821]]> : tensor<2x2xi16>)
llvm.mlir.global private constant @small(dense<[[1.0, 0x7FC0], [-3.0, 0.1]]> : tensor<2x2xbf16>) : !llvm.array<2 x array<2 x bf16>>

// CHECK: llvm.mlir.global private constant @one(1065353216 : i32) {{.*}} : i32
llvm.mlir.global private constant @one(1.000000e+00 : f32) : f32

// CHECK-LABEL: llvm.func @scalar
// CHECK: %[[I:.*]] = llvm.mlir.constant(1036831949 : i32) : i32
// CHECK: %[[F:.*]] = llvm.freeze %[[I]]
// CHECK: %[[B:.*]] = llvm.bitcast %[[F]] : i32 to f32
// CHECK: llvm.return %[[B]]
llvm.func @scalar() -> f32 {
  %0 = llvm.mlir.constant(1.000000e-01 : f32) : f32
  llvm.return %0 : f32
}

// CHECK-LABEL: llvm.func @vector
// CHECK: llvm.mlir.constant(dense<14336> : vector<4xi16>) : vector<4xi16>
// CHECK: llvm.bitcast {{.*}} to vector<4xf16>
llvm.func @vector() -> vector<4xf16> {
  %0 = llvm.mlir.constant(dense<5.000000e-01> : vector<4xf16>) : vector<4xf16>
  llvm.return %0 : vector<4xf16>
}

// CHECK-LABEL: llvm.func @complex
// CHECK-COUNT-2: llvm.insertvalue
llvm.func @complex() -> !llvm.struct<(f64, f64)> {
  %0 = llvm.mlir.constant([1.000000e-01, 2.000000e+00]) : !llvm.struct<(f64, f64)>
  llvm.return %0 : !llvm.struct<(f64, f64)>
}

// What would fold to a float constant is frozen too.
// CHECK-LABEL: llvm.func @from_integer
// CHECK: llvm.freeze
// CHECK: llvm.sitofp
llvm.func @from_integer() -> f32 {
  %0 = llvm.mlir.constant(3 : i32) : i32
  %1 = llvm.sitofp %0 : i32 to f32
  llvm.return %1 : f32
}

// CHECK-LABEL: llvm.func @from_computed_integers
// CHECK: %[[BITS:.*]] = llvm.or
// CHECK: %[[FROZEN:.*]] = llvm.freeze %[[BITS]]
// CHECK: llvm.bitcast %[[FROZEN]] : i32 to f32
// CHECK: %[[OTHERS:.*]] = llvm.or
// CHECK-NEXT: llvm.bitcast %[[OTHERS]] : i32 to f32
llvm.func @from_computed_integers(%x: i32) -> f32 {
  %0 = llvm.mlir.constant(3 : i32) : i32
  %1 = llvm.mlir.constant(1065353216 : i32) : i32
  %2 = llvm.or %0, %1 : i32
  %3 = llvm.bitcast %2 : i32 to f32
  %4 = llvm.or %x, %1 : i32
  %5 = llvm.bitcast %4 : i32 to f32
  %6 = llvm.fadd %3, %5 : f32
  llvm.return %6 : f32
}

// CHECK-LABEL: llvm.func @integer
// CHECK-NEXT: llvm.mlir.constant(3 : i32) : i32
// CHECK-NEXT: llvm.return
llvm.func @integer() -> i32 {
  %0 = llvm.mlir.constant(3 : i32) : i32
  llvm.return %0 : i32
}
