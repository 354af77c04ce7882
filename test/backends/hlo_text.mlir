// RUN: %python -m lamina.tools.lamina_compile %s --emit hlo | FileCheck %s

// A kernel of several ops is a fusion with its computation; one of a single op is that op. A loop
// goes around with one tuple, in which what it reads from outside comes last.

// CHECK: HloModule jit_f, is_scheduled=true, entry_computation_layout={(f32[8,4]{1,0}, f32[4,4]{1,0}, pred[])->(f32[8]{0}, f32[8,4]{1,0})}

// CHECK: %fused_computation{{[.0-9]*}} (param_0: f32[8,4]) -> f32[8] {
// CHECK:   %param_0 = f32[8,4]{1,0} parameter(0)
// CHECK:   %exponential.{{[0-9]+}} = f32[8,4]{1,0} exponential(%param_0), metadata={op_name="jit(f)/exp" source_file="model.py" source_line=7}
// CHECK:   ROOT %reduce.{{[0-9]+}} = f32[8]{0} reduce(%exponential.{{[0-9]+}}, %constant.{{[0-9]+}}), dimensions={1}, to_apply=%region

// CHECK: %[[COND:region.*]] (arg_tuple: (s32[], f32[8,4], s32[], s32[], f32[4,4])) -> pred[] {
// CHECK:   ROOT %{{.*}} = pred[]
// CHECK: %[[BODY:region.*]] (arg_tuple: (s32[], f32[8,4], s32[], s32[], f32[4,4])) -> (s32[], f32[8,4], s32[], s32[], f32[4,4]) {
// CHECK:   %get-tuple-element.{{[0-9]+}} = f32[4,4]{1,0} get-tuple-element(%arg_tuple), index=4
// CHECK:   f32[8,4]{1,0} dot(%{{.*}}, %{{.*}}), lhs_contracting_dims={1}, rhs_contracting_dims={0}
// CHECK:   ROOT %tuple

// CHECK: %[[LOOP:fused_computation.*]] (param_0: f32[8,4], param_1: f32[4,4]) -> f32[8,4] {
// CHECK:   while(%tuple.{{[0-9]+}}), condition=%[[COND]], body=%[[BODY]]
// CHECK:   conditional(%param_0, %tuple.{{[0-9]+}}, %tuple.{{[0-9]+}}), true_computation=%region{{.*}}, false_computation=%region

// CHECK: ENTRY %main (Arg_0: f32[8,4], Arg_1: f32[4,4], Arg_2: pred[]) -> (f32[8], f32[8,4]) {
// CHECK:   fusion(%Arg_0), kind=kInput, calls=%fused_computation
// CHECK:   call(%Arg_0, %Arg_1), to_apply=%[[LOOP]]
// CHECK:   ROOT %tuple
module @jit_f {
  func.func public @main(%x: tensor<8x4xf32>, %w: tensor<4x4xf32>, %p: tensor<i1>) -> (tensor<8xf32>, tensor<8x4xf32>) {
    %c = stablehlo.constant dense<0.0> : tensor<f32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %ten = stablehlo.constant dense<10> : tensor<i32>
    %0 = stablehlo.exponential %x : tensor<8x4xf32> loc("jit(f)/exp"("model.py":7:3 to :9))
    %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.add across dimensions = [1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32>
    %2:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<8x4xf32>
      cond {
        %3 = stablehlo.compare LT, %i, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %3 : tensor<i1>
      } do {
        %3 = stablehlo.add %i, %one : tensor<i32>
        %4 = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
        stablehlo.return %3, %4 : tensor<i32>, tensor<8x4xf32>
      }
    %5 = "stablehlo.if"(%p) ({
      %6 = stablehlo.negate %2#1 : tensor<8x4xf32>
      stablehlo.return %6 : tensor<8x4xf32>
    }, {
      stablehlo.return %x : tensor<8x4xf32>
    }) : (tensor<i1>) -> tensor<8x4xf32>
    return %1, %5 : tensor<8xf32>, tensor<8x4xf32>
  }
}
