// A named computation is inlined like a call, inside a while as well.
module {
  sdy.mesh @mesh = <["a"=2, "b"=2]>
  func.func public @main(%arg0: tensor<8x4xf32>) -> tensor<8x4xf32> {
    %0 = stablehlo.while(%arg1 = %arg0) : tensor<8x4xf32>
    cond {
      %1 = stablehlo.constant dense<true> : tensor<i1>
      stablehlo.return %1 : tensor<i1>
    }
    do {
      %2 = sdy.named_computation<"f">(%arg1) in_shardings=[<@mesh, [{"a"}, {?}]>] (%arg2: tensor<8x4xf32>) {
        %3 = stablehlo.tanh %arg2 : tensor<8x4xf32>
        sdy.return %3 : tensor<8x4xf32>
      } : (tensor<8x4xf32>) -> tensor<8x4xf32>
      stablehlo.return %2 : tensor<8x4xf32>
    }
    return %0 : tensor<8x4xf32>
  }
}
// ---- after inline_calls ----
module {
  sdy.mesh @mesh = <["a"=2, "b"=2]>
  func.func public @main(%arg0: tensor<8x4xf32>) -> tensor<8x4xf32> {
    %0 = stablehlo.while(%arg1 = %arg0) : tensor<8x4xf32>
    cond {
      %1 = stablehlo.constant dense<true> : tensor<i1>
      stablehlo.return %1 : tensor<i1>
    }
    do {
      %2 = sdy.sharding_constraint %arg1 <@mesh, [{"a"}, {?}]> : tensor<8x4xf32>
      %3 = stablehlo.tanh %2 : tensor<8x4xf32>
      stablehlo.return %3 : tensor<8x4xf32>
    }
    return %0 : tensor<8x4xf32>
  }
}
