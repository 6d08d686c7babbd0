// Broadcasts and transposes that only add or move dims of size 1 are reshapes; an annotation stays on the result.
module @dims_of_size_one {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<8x4xf32>, %arg1: tensor<1x4xf32>, %arg2: tensor<8x4xf32>) -> (tensor<8x1x4xf32>, tensor<4x1xf32>, tensor<8x4x1xf32>) {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [0, 2] : (tensor<8x4xf32>) -> tensor<8x1x4xf32>
    %1 = stablehlo.transpose %arg1, dims = [1, 0] : (tensor<1x4xf32>) -> tensor<4x1xf32>
    %2 = stablehlo.broadcast_in_dim %arg2, dims = [0, 1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {?}, {?}]>]>} : (tensor<8x4xf32>) -> tensor<8x4x1xf32>
    return %0, %1, %2 : tensor<8x1x4xf32>, tensor<4x1xf32>, tensor<8x4x1xf32>
  }
}
// ---- after simplify ----
module @dims_of_size_one {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<8x4xf32>, %arg1: tensor<1x4xf32>, %arg2: tensor<8x4xf32>) -> (tensor<8x1x4xf32>, tensor<4x1xf32>, tensor<8x4x1xf32>) {
    %0 = stablehlo.reshape %arg0 : (tensor<8x4xf32>) -> tensor<8x1x4xf32>
    %1 = stablehlo.reshape %arg1 : (tensor<1x4xf32>) -> tensor<4x1xf32>
    %2 = stablehlo.reshape %arg2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {?}, {?}]>]>} : (tensor<8x4xf32>) -> tensor<8x4x1xf32>
    return %0, %1, %2 : tensor<8x1x4xf32>, tensor<4x1xf32>, tensor<8x4x1xf32>
  }
}
