// A broadcast of a constant with equal elements is such a constant, and equal ones are one.
module @moved_splat {
  func.func public @main(%arg0: tensor<8x4xf32>) -> tensor<8x4xf32> {
    %0 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<8x4xf32>
    %2 = stablehlo.constant dense<2.000000e+00> : tensor<4xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [1] : (tensor<4xf32>) -> tensor<8x4xf32>
    %4 = stablehlo.add %arg0, %1 : tensor<8x4xf32>
    %5 = stablehlo.multiply %4, %3 : tensor<8x4xf32>
    return %5 : tensor<8x4xf32>
  }
}
// ---- after simplify ----
module @moved_splat {
  func.func public @main(%arg0: tensor<8x4xf32>) -> tensor<8x4xf32> {
    %0 = stablehlo.constant dense<2.000000e+00> : tensor<8x4xf32>
    %1 = stablehlo.add %arg0, %0 : tensor<8x4xf32>
    %2 = stablehlo.multiply %1, %0 : tensor<8x4xf32>
    return %2 : tensor<8x4xf32>
  }
}
