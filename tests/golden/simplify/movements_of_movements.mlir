// A reshape of a reshape, a transpose of a transpose and a broadcast of a broadcast are one op, or none.
module @movements_of_movements {
  func.func public @main(%arg0: tensor<8x4xf32>, %arg1: tensor<2x3x4xf32>, %arg2: tensor<4xf32>) -> (tensor<8x4xf32>, tensor<4x3x2xf32>, tensor<2x4x5x8xf32>) {
    %0 = stablehlo.reshape %arg0 : (tensor<8x4xf32>) -> tensor<32xf32>
    %1 = stablehlo.reshape %0 : (tensor<32xf32>) -> tensor<8x4xf32>
    %2 = stablehlo.transpose %arg1, dims = [1, 2, 0] : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
    %3 = stablehlo.transpose %2, dims = [1, 0, 2] : (tensor<3x4x2xf32>) -> tensor<4x3x2xf32>
    %4 = stablehlo.reshape %arg2 : (tensor<4xf32>) -> tensor<4x1xf32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [1, 2] : (tensor<4x1xf32>) -> tensor<2x4x8xf32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [0, 1, 3] : (tensor<2x4x8xf32>) -> tensor<2x4x5x8xf32>
    return %1, %3, %6 : tensor<8x4xf32>, tensor<4x3x2xf32>, tensor<2x4x5x8xf32>
  }
}
// ---- after simplify ----
module @movements_of_movements {
  func.func public @main(%arg0: tensor<8x4xf32>, %arg1: tensor<2x3x4xf32>, %arg2: tensor<4xf32>) -> (tensor<8x4xf32>, tensor<4x3x2xf32>, tensor<2x4x5x8xf32>) {
    %0 = stablehlo.transpose %arg1, dims = [2, 1, 0] : (tensor<2x3x4xf32>) -> tensor<4x3x2xf32>
    %1 = stablehlo.broadcast_in_dim %arg2, dims = [1] : (tensor<4xf32>) -> tensor<2x4x5x8xf32>
    return %arg0, %0, %1 : tensor<8x4xf32>, tensor<4x3x2xf32>, tensor<2x4x5x8xf32>
  }
}
