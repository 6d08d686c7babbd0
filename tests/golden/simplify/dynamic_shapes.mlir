// An op whose shape is an operand becomes the static one; propagation knows its rule.
module @dynamic_shapes {
  func.func public @main(%arg0: tensor<6xf32>) -> tensor<5x3xf32> {
    %0 = stablehlo.constant dense<[2, 3]> : tensor<2xi32>
    %1 = stablehlo.dynamic_reshape %arg0, %0 : (tensor<6xf32>, tensor<2xi32>) -> tensor<2x3xf32>
    %2 = chlo.constant dense<0.000000e+00> : tensor<f32>
    %3 = stablehlo.constant dense<[1, 0]> : tensor<2xi64>
    %4 = stablehlo.constant dense<[2, 0]> : tensor<2xi64>
    %5 = stablehlo.constant dense<0> : tensor<2xi64>
    %6 = stablehlo.dynamic_pad %1, %2, %3, %4, %5 : (tensor<2x3xf32>, tensor<f32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<5x3xf32>
    return %6 : tensor<5x3xf32>
  }
}
// ---- after simplify ----
module @dynamic_shapes {
  func.func public @main(%arg0: tensor<6xf32>) -> tensor<5x3xf32> {
    %0 = stablehlo.reshape %arg0 : (tensor<6xf32>) -> tensor<2x3xf32>
    %1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %2 = stablehlo.pad %0, %1, low = [1, 0], high = [2, 0], interior = [0, 0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<5x3xf32>
    return %2 : tensor<5x3xf32>
  }
}
