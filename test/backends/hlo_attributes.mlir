// RUN: %python -m lamina.tools.lamina_compile %s --emit hlo | FileCheck %s

// CHECK-DAG: pad(%{{.*}}, %{{.*}}), padding=1_2_0x0_0_1
// CHECK-DAG: transpose(%{{.*}}), dimensions={1,0}
// CHECK-DAG: gather(%{{.*}}, %{{.*}}), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,6}
// CHECK-DAG: sort(%{{.*}}), dimensions={1}, is_stable=true, to_apply=%region
// CHECK-DAG: convolution(%{{.*}}, %{{.*}}), window={size=2 stride=2}, dim_labels=b0f_0io->b0f
// CHECK-DAG: reduce-window(%{{.*}}, %{{.*}}), window={size=1x3 stride=1x2}, to_apply=%region
// CHECK-DAG: compare(%{{.*}}, %{{.*}}), direction=GT
// CHECK-DAG: slice(%{{.*}}), slice={[0:4], [1:6:2]}
module @jit_attributes {
  func.func public @main(%x: tensor<4x6xf32>, %i: tensor<3x1xi32>, %k: tensor<2x1x5xf32>) -> (tensor<7x11xf32>, tensor<6x4xf32>, tensor<3x6xf32>, tensor<4x6xf32>, tensor<4x3x5xf32>, tensor<4x2xf32>, tensor<4x6xi1>, tensor<4x3xf32>) {
    %c = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.pad %x, %c, low = [1, 0], high = [2, 0], interior = [0, 1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<7x11xf32>
    %1 = stablehlo.transpose %x, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
    %2 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 6>}> : (tensor<4x6xf32>, tensor<3x1xi32>) -> tensor<3x6xf32>
    %3 = "stablehlo.sort"(%x) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %p = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }) : (tensor<4x6xf32>) -> tensor<4x6xf32>
    %r = stablehlo.reshape %x : (tensor<4x6xf32>) -> tensor<4x6x1xf32>
    %4 = stablehlo.convolution(%r, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x6x1xf32>, tensor<2x1x5xf32>) -> tensor<4x3x5xf32>
    %5 = "stablehlo.reduce_window"(%x, %c) <{window_dimensions = array<i64: 1, 3>, window_strides = array<i64: 1, 2>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x2xf32>
    %z = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<4x6xf32>
    %6 = stablehlo.compare GT, %x, %z : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xi1>
    %7 = stablehlo.slice %x [0:4, 1:6:2] : (tensor<4x6xf32>) -> tensor<4x3xf32>
    return %0, %1, %2, %3, %4, %5, %6, %7 : tensor<7x11xf32>, tensor<6x4xf32>, tensor<3x6xf32>, tensor<4x6xf32>, tensor<4x3x5xf32>, tensor<4x2xf32>, tensor<4x6xi1>, tensor<4x3xf32>
  }
}
