// RUN: %lamina-opt %s --stablehlo-reduce-parts | FileCheck %s

// Parts along what is summed are added, each computed where it is.
// CHECK-LABEL: func.func @sum
// CHECK-NOT: concatenate
// CHECK: %[[A:.*]] = stablehlo.exponential %arg0
// CHECK-NEXT: %[[S:.*]] = stablehlo.reduce(%[[A]] init: %{{.*}}) applies stablehlo.add across dimensions = [0] : (tensor<20000xf32>
// CHECK-NEXT: %[[B:.*]] = stablehlo.exponential %arg1
// CHECK-NEXT: %[[T:.*]] = stablehlo.reduce(%[[B]] init: %{{.*}}) applies stablehlo.add across dimensions = [0] : (tensor<30000xf32>
// CHECK-NEXT: stablehlo.add %[[S]], %[[T]]
func.func @sum(%x: tensor<20000xf32>, %y: tensor<30000xf32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.concatenate %x, %y, dim = 0 : (tensor<20000xf32>, tensor<30000xf32>) -> tensor<50000xf32>
  %1 = stablehlo.exponential %0 : tensor<50000xf32>
  %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<50000xf32>, tensor<f32>) -> tensor<f32>
  return %2 : tensor<f32>
}

// Along what stays they are put together.
// CHECK-LABEL: func.func @rows
// CHECK: %[[S:.*]] = stablehlo.reduce(%arg0 init: %{{.*}}) applies stablehlo.maximum across dimensions = [1]
// CHECK: %[[T:.*]] = stablehlo.reduce(%arg1 init: %{{.*}}) applies stablehlo.maximum across dimensions = [1]
// CHECK: stablehlo.concatenate %[[S]], %[[T]], dim = 0 : (tensor<200xf32>, tensor<300xf32>) -> tensor<500xf32>
func.func @rows(%x: tensor<200x100xf32>, %y: tensor<300x100xf32>) -> tensor<500xf32> {
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.concatenate %x, %y, dim = 0 : (tensor<200x100xf32>, tensor<300x100xf32>) -> tensor<500x100xf32>
  %1 = stablehlo.reduce(%0 init: %least) applies stablehlo.maximum across dimensions = [1] : (tensor<500x100xf32>, tensor<f32>) -> tensor<500xf32>
  return %1 : tensor<500xf32>
}

// What is around a pad is cut no further where it is above and below.
// CHECK-LABEL: func.func @padded
// CHECK-NOT: stablehlo.pad
// CHECK: tensor<1x202xf32>
// CHECK: applies stablehlo.add across dimensions = [0, 1] : (tensor<1x202xf32>
// CHECK: applies stablehlo.add across dimensions = [0, 1] : (tensor<200x1xf32>
// CHECK: stablehlo.slice %arg1 [1:201, 1:201]
// CHECK: applies stablehlo.add across dimensions = [0, 1] : (tensor<200x200xf32>
// CHECK: applies stablehlo.add across dimensions = [0, 1] : (tensor<200x1xf32>
// CHECK: applies stablehlo.add across dimensions = [0, 1] : (tensor<1x202xf32>
// CHECK-NOT: applies
func.func @padded(%x: tensor<200x200xf32>, %y: tensor<202x202xf32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = stablehlo.pad %x, %one, low = [1, 1], high = [1, 1], interior = [0, 0] : (tensor<200x200xf32>, tensor<f32>) -> tensor<202x202xf32>
  %1 = stablehlo.multiply %0, %y : tensor<202x202xf32>
  %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<202x202xf32>, tensor<f32>) -> tensor<f32>
  return %2 : tensor<f32>
}

// Left alone: what others read, a sum of floats that is rounded in each step, little.
// CHECK-LABEL: func.func @left_alone
// CHECK: applies stablehlo.add across dimensions = [0] : (tensor<50000xf32>
// CHECK: applies stablehlo.add across dimensions = [0] : (tensor<50000xbf16>
// CHECK: applies stablehlo.add across dimensions = [0] : (tensor<50xf32>
func.func @left_alone(%x: tensor<20000xf32>, %y: tensor<30000xf32>, %u: tensor<20000xbf16>, %v: tensor<30000xbf16>, %a: tensor<20xf32>, %b: tensor<30xf32>) -> (tensor<f32>, tensor<50000xf32>, tensor<bf16>, tensor<f32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %none = stablehlo.constant dense<0.0> : tensor<bf16>
  %0 = stablehlo.concatenate %x, %y, dim = 0 : (tensor<20000xf32>, tensor<30000xf32>) -> tensor<50000xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<50000xf32>, tensor<f32>) -> tensor<f32>
  %2 = stablehlo.concatenate %u, %v, dim = 0 : (tensor<20000xbf16>, tensor<30000xbf16>) -> tensor<50000xbf16>
  %3 = stablehlo.reduce(%2 init: %none) applies stablehlo.add across dimensions = [0] : (tensor<50000xbf16>, tensor<bf16>) -> tensor<bf16>
  %4 = stablehlo.concatenate %a, %b, dim = 0 : (tensor<20xf32>, tensor<30xf32>) -> tensor<50xf32>
  %5 = stablehlo.reduce(%4 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<50xf32>, tensor<f32>) -> tensor<f32>
  return %1, %0, %3, %5 : tensor<f32>, tensor<50000xf32>, tensor<bf16>, tensor<f32>
}

// Parts of one element to each result are combined as they are: the greatest of many neighbours.
// CHECK-LABEL: func.func @stacked
// CHECK-NOT: stablehlo.reduce
// CHECK-NOT: stablehlo.concatenate
// CHECK-COUNT-8: stablehlo.maximum
// CHECK-NEXT: return
func.func @stacked(%x: tensor<100x202xf64>) -> tensor<100x200xf64> {
  %0 = stablehlo.slice %x [0:100, 0:200] : (tensor<100x202xf64>) -> tensor<100x200xf64>
  %1 = stablehlo.slice %x [0:100, 1:201] : (tensor<100x202xf64>) -> tensor<100x200xf64>
  %2 = stablehlo.slice %x [0:100, 2:202] : (tensor<100x202xf64>) -> tensor<100x200xf64>
  %a = stablehlo.reshape %0 : (tensor<100x200xf64>) -> tensor<1x100x200xf64>
  %b = stablehlo.reshape %1 : (tensor<100x200xf64>) -> tensor<1x100x200xf64>
  %c = stablehlo.reshape %2 : (tensor<100x200xf64>) -> tensor<1x100x200xf64>
  %all = stablehlo.concatenate %a, %b, %c, %a, %b, %c, %a, %b, %c, dim = 0 : (tensor<1x100x200xf64>, tensor<1x100x200xf64>, tensor<1x100x200xf64>, tensor<1x100x200xf64>, tensor<1x100x200xf64>, tensor<1x100x200xf64>, tensor<1x100x200xf64>, tensor<1x100x200xf64>, tensor<1x100x200xf64>) -> tensor<9x100x200xf64>
  %least = stablehlo.constant dense<0xFFF0000000000000> : tensor<f64>
  %r = stablehlo.reduce(%all init: %least) applies stablehlo.maximum across dimensions = [0] : (tensor<9x100x200xf64>, tensor<f64>) -> tensor<100x200xf64>
  return %r : tensor<100x200xf64>
}
