// Without a mesh there is nothing to choose.
module {
  func.func public @main(%arg0: tensor<16xf32>) -> tensor<16xf32> {
    %0 = stablehlo.tanh %arg0 : tensor<16xf32>
    return %0 : tensor<16xf32>
  }
}
// ---- after choose ----
module {
  func.func public @main(%arg0: tensor<16xf32>) -> tensor<16xf32> {
    %0 = stablehlo.tanh %arg0 : tensor<16xf32>
    return %0 : tensor<16xf32>
  }
}
