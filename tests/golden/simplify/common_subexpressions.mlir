// The two exponentials are one.
module @jit_common_subexpressions {
  func.func public @main(%arg0: tensor<8x4xf32>) -> tensor<8x4xf32> {
    %0 = stablehlo.exponential %arg0 : tensor<8x4xf32>
    %1 = stablehlo.exponential %arg0 : tensor<8x4xf32>
    %2 = stablehlo.add %0, %1 : tensor<8x4xf32>
    return %2 : tensor<8x4xf32>
  }
}
// ---- after simplify ----
module @jit_common_subexpressions {
  func.func public @main(%arg0: tensor<8x4xf32>) -> tensor<8x4xf32> {
    %0 = stablehlo.exponential %arg0 : tensor<8x4xf32>
    %1 = stablehlo.add %0, %0 : tensor<8x4xf32>
    return %1 : tensor<8x4xf32>
  }
}
