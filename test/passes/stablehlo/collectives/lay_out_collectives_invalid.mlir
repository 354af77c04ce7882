// RUN: %lamina-opt %s --stablehlo-lay-out-collectives --split-input-file --verify-diagnostics

module attributes {mhlo.num_partitions = 4 : i32} {
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{[all_reduce] combines values of devices with something else than add}}
  %0 = "stablehlo.all_reduce"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.subtract %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
}

// -----

module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 2 : i32} {
func.func @main() -> tensor<ui32> {
  // expected-error @+1 {{[replica_id] runs on 2 replicas of 2 partitions; one must be 1}}
  %0 = stablehlo.replica_id : tensor<ui32>
  return %0 : tensor<ui32>
}
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{[collective_permute] names device 1 in a program for 1}}
  %0 = "stablehlo.collective_permute"(%x) {source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
