// Annotated values stay, and so do reshapes to other dims that another op reads. A broadcast that transposes is no reshape.
module @movements_that_stay {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<8x4xf32>, %arg1: tensor<8x4xf32>, %arg2: tensor<4x2xf32>) -> (tensor<8x4xf32>, tensor<4x8xf32>, tensor<32xf32>, tensor<2x4xf32>) {
    %0 = stablehlo.reshape %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8x4xf32>) -> tensor<32xf32>
    %1 = stablehlo.reshape %0 : (tensor<32xf32>) -> tensor<8x4xf32>
    %2 = stablehlo.reshape %arg1 : (tensor<8x4xf32>) -> tensor<32xf32>
    %3 = stablehlo.reshape %2 : (tensor<32xf32>) -> tensor<4x8xf32>
    %4 = stablehlo.tanh %2 : tensor<32xf32>
    %5 = stablehlo.broadcast_in_dim %arg2, dims = [1, 0] : (tensor<4x2xf32>) -> tensor<2x4xf32>
    return %1, %3, %4, %5 : tensor<8x4xf32>, tensor<4x8xf32>, tensor<32xf32>, tensor<2x4xf32>
  }
}
// ---- after simplify ----
module @movements_that_stay {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<8x4xf32>, %arg1: tensor<8x4xf32>, %arg2: tensor<4x2xf32>) -> (tensor<8x4xf32>, tensor<4x8xf32>, tensor<32xf32>, tensor<2x4xf32>) {
    %0 = stablehlo.reshape %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8x4xf32>) -> tensor<32xf32>
    %1 = stablehlo.reshape %0 : (tensor<32xf32>) -> tensor<8x4xf32>
    %2 = stablehlo.reshape %arg1 : (tensor<8x4xf32>) -> tensor<32xf32>
    %3 = stablehlo.reshape %2 : (tensor<32xf32>) -> tensor<4x8xf32>
    %4 = stablehlo.tanh %2 : tensor<32xf32>
    %5 = stablehlo.broadcast_in_dim %arg2, dims = [1, 0] : (tensor<4x2xf32>) -> tensor<2x4xf32>
    return %1, %3, %4, %5 : tensor<8x4xf32>, tensor<4x8xf32>, tensor<32xf32>, tensor<2x4xf32>
  }
}
