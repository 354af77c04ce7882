// RUN: %lamina-opt %s --pass-pipeline='llvm-limit-inlining{most=2}' | FileCheck %s
// RUN: %lamina-opt %s --pass-pipeline='llvm-limit-inlining{most=2 scalars=true}' | FileCheck %s --check-prefix=SCALARS

// CHECK: llvm.func internal @often(%arg0: vector<8xf32>) -> vector<8xf32> attributes {passthrough = ["noinline"]}
llvm.func internal @often(%x: vector<8xf32>) -> vector<8xf32> attributes {passthrough = ["alwaysinline"]} {
  llvm.return %x : vector<8xf32>
}

// CHECK: llvm.func internal @twice({{.*}}passthrough = ["alwaysinline"]}
llvm.func internal @twice(%x: vector<8xf32>) -> vector<8xf32> attributes {passthrough = ["alwaysinline"]} {
  llvm.return %x : vector<8xf32>
}

// CHECK: llvm.func internal @scalar({{.*}}passthrough = ["alwaysinline"]}
// SCALARS: llvm.func internal @scalar({{.*}}passthrough = ["noinline"]}
llvm.func internal @scalar(%x: f32) -> f32 attributes {passthrough = ["alwaysinline"]} {
  llvm.return %x : f32
}

llvm.func @k(%x: vector<8xf32>, %y: f32) -> vector<8xf32> {
  %0 = llvm.call @often(%x) : (vector<8xf32>) -> vector<8xf32>
  %1 = llvm.call @often(%0) : (vector<8xf32>) -> vector<8xf32>
  %2 = llvm.call @often(%1) : (vector<8xf32>) -> vector<8xf32>
  %3 = llvm.call @twice(%2) : (vector<8xf32>) -> vector<8xf32>
  %4 = llvm.call @twice(%3) : (vector<8xf32>) -> vector<8xf32>
  %5 = llvm.call @scalar(%y) : (f32) -> f32
  %6 = llvm.call @scalar(%5) : (f32) -> f32
  %7 = llvm.call @scalar(%6) : (f32) -> f32
  llvm.return %4 : vector<8xf32>
}
