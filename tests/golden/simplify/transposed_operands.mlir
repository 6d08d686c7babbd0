// A product reads an operand as it is before a transpose, unless the dims of its result would change their order.
module @transposed_operands {
  func.func public @main(%arg0: tensor<8x4xf32>, %arg1: tensor<16x4xf32>, %arg2: tensor<2x3x4xf32>, %arg3: tensor<4x2x5xf32>) -> (tensor<8x16xf32>, tensor<2x3x5xf32>, tensor<3x2x8xf32>) {
    %0 = stablehlo.transpose %arg1, dims = [1, 0] : (tensor<16x4xf32>) -> tensor<4x16xf32>
    %1 = stablehlo.dot_general %arg0, %0, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST] : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
    %2 = stablehlo.transpose %arg2, dims = [2, 1, 0] : (tensor<2x3x4xf32>) -> tensor<4x3x2xf32>
    %3 = stablehlo.dot_general %2, %arg3, batching_dims = [2] x [1], contracting_dims = [0] x [0] : (tensor<4x3x2xf32>, tensor<4x2x5xf32>) -> tensor<2x3x5xf32>
    %4 = stablehlo.dot_general %2, %arg0, contracting_dims = [0] x [1] : (tensor<4x3x2xf32>, tensor<8x4xf32>) -> tensor<3x2x8xf32>
    return %1, %3, %4 : tensor<8x16xf32>, tensor<2x3x5xf32>, tensor<3x2x8xf32>
  }
}
// ---- after simplify ----
module @transposed_operands {
  func.func public @main(%arg0: tensor<8x4xf32>, %arg1: tensor<16x4xf32>, %arg2: tensor<2x3x4xf32>, %arg3: tensor<4x2x5xf32>) -> (tensor<8x16xf32>, tensor<2x3x5xf32>, tensor<3x2x8xf32>) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [1], precision = [HIGHEST, HIGHEST] : (tensor<8x4xf32>, tensor<16x4xf32>) -> tensor<8x16xf32>
    %1 = stablehlo.transpose %arg2, dims = [2, 1, 0] : (tensor<2x3x4xf32>) -> tensor<4x3x2xf32>
    %2 = stablehlo.dot_general %arg2, %arg3, batching_dims = [0] x [1], contracting_dims = [2] x [0] : (tensor<2x3x4xf32>, tensor<4x2x5xf32>) -> tensor<2x3x5xf32>
    %3 = stablehlo.dot_general %1, %arg0, contracting_dims = [0] x [1] : (tensor<4x3x2xf32>, tensor<8x4xf32>) -> tensor<3x2x8xf32>
    return %0, %2, %3 : tensor<8x16xf32>, tensor<2x3x5xf32>, tensor<3x2x8xf32>
  }
}
