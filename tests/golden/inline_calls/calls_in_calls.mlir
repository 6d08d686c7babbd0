// A function that calls another is inlined with what it calls; a public one stays as well.
module {
  func.func public @main(%arg0: tensor<8x4xf32>) -> tensor<8x4xf32> {
    %0 = func.call @g(%arg0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
  func.func private @f(%arg0: tensor<8x4xf32>) -> tensor<8x4xf32> {
    %0 = stablehlo.tanh %arg0 : tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
  func.func public @g(%arg0: tensor<8x4xf32>) -> tensor<8x4xf32> {
    %0 = func.call @f(%arg0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %1 = stablehlo.add %0, %arg0 : tensor<8x4xf32>
    return %1 : tensor<8x4xf32>
  }
}
// ---- after inline_calls ----
module {
  func.func public @main(%arg0: tensor<8x4xf32>) -> tensor<8x4xf32> {
    %0 = stablehlo.tanh %arg0 : tensor<8x4xf32>
    %1 = stablehlo.add %0, %arg0 : tensor<8x4xf32>
    return %1 : tensor<8x4xf32>
  }
  func.func public @g(%arg0: tensor<8x4xf32>) -> tensor<8x4xf32> {
    %0 = stablehlo.tanh %arg0 : tensor<8x4xf32>
    %1 = stablehlo.add %0, %arg0 : tensor<8x4xf32>
    return %1 : tensor<8x4xf32>
  }
}
