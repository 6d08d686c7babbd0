// The product that nothing uses goes, and all it needed.
module @jit_dead_code {
  func.func public @main(%arg0: tensor<8x4xf32>) -> tensor<8x4xf32> {
    %0 = stablehlo.tanh %arg0 : tensor<8x4xf32>
    %1 = stablehlo.constant dense<3.000000e+00> : tensor<8x4xf32>
    %2 = stablehlo.multiply %0, %1 : tensor<8x4xf32>
    %3 = stablehlo.constant dense<1.000000e+00> : tensor<8x4xf32>
    %4 = stablehlo.add %arg0, %3 : tensor<8x4xf32>
    return %4 : tensor<8x4xf32>
  }
}
// ---- after simplify ----
module @jit_dead_code {
  func.func public @main(%arg0: tensor<8x4xf32>) -> tensor<8x4xf32> {
    %0 = stablehlo.constant dense<1.000000e+00> : tensor<8x4xf32>
    %1 = stablehlo.add %arg0, %0 : tensor<8x4xf32>
    return %1 : tensor<8x4xf32>
  }
}
