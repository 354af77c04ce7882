// RUN: %lamina-opt %s --split-input-file --pass-pipeline=gpu-avoid-calls | FileCheck %s

// CHECK-LABEL: func.func @quotient
// CHECK-DAG: %[[X:.*]] = arith.extf %arg0 : f32 to f64
// CHECK-DAG: %[[Y:.*]] = arith.extf %arg1 : f32 to f64
// CHECK: %[[GUESS:.*]] = llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.d"(%[[Y]])
// CHECK: %[[INVERSE:.*]] = math.fma %[[GUESS]]
// CHECK: %[[Q:.*]] = arith.mulf %[[X]], %[[INVERSE]] : f64
// CHECK: %[[REST:.*]] = math.fma %{{.*}}, %[[Q]], %[[X]] : f64
// CHECK: %[[EXACT:.*]] = math.fma %[[REST]], %[[INVERSE]], %[[Q]] : f64
// CHECK: %[[LIMIT:.*]] = arith.mulf %[[X]], %[[GUESS]] : f64
// CHECK: %[[CHOSEN:.*]] = arith.select %{{.*}}, %[[EXACT]], %[[LIMIT]] : f64
// CHECK: arith.truncf %[[CHOSEN]] : f64 to f32
func.func @quotient(%a: f32, %b: f32) -> f32 {
  nvvm.wgmma.fence.aligned
  %q = arith.divf %a, %b : f32
  return %q : f32
}

// CHECK-LABEL: func.func @root
// CHECK: llvm.call_intrinsic "llvm.nvvm.rsqrt.approx.ftz.d"
// CHECK-NOT: math.sqrt
// CHECK: %[[ROOT:.*]] = arith.truncf %{{.*}} : f64 to f32
// CHECK: arith.select %{{.*}}, %{{.*}}, %[[ROOT]] : f32
// CHECK: return
func.func @root(%a: f32) -> f32 {
  %r = math.sqrt %a : f32
  return %r : f32
}

// Narrower floats are rounded from f32, as they would be; f64 stays.
// CHECK-LABEL: func.func @other_types
// CHECK: rcp.approx
// CHECK: %[[SINGLE:.*]] = arith.truncf %{{.*}} : f64 to f32
// CHECK: arith.truncf %[[SINGLE]] : f32 to f16
// CHECK: arith.divf %{{.*}} : f64
func.func @other_types(%a: f16, %b: f64) -> (f16, f64) {
  %q = arith.divf %a, %a : f16
  %r = arith.divf %b, %b : f64
  return %q, %r : f16, f64
}

// -----

// Attention's products of warpgroups are in assembly.
// CHECK-LABEL: func.func @attention
// CHECK: rcp.approx
func.func @attention(%a: f32, %b: f32) -> f32 {
  llvm.inline_asm has_side_effects "wgmma.fence.sync.aligned;", "" : () -> ()
  %q = arith.divf %a, %b : f32
  return %q : f32
}

// -----

// Nothing waits for the calls of other kernels.
// CHECK-LABEL: func.func @other_kernels
// CHECK: arith.divf
// CHECK: math.sqrt
func.func @other_kernels(%a: f32, %b: f32) -> (f32, f32) {
  llvm.inline_asm has_side_effects "membar.gl;", "" : () -> ()
  %q = arith.divf %a, %b : f32
  %r = math.sqrt %a : f32
  return %q, %r : f32, f32
}
