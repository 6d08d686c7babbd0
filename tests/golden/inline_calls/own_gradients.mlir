// Regions with a gradient of their own are inlined with the shardings of their arguments and results, as named ones are.
module {
  sdy.mesh @mesh = <["a"=2, "b"=2]>
  func.func public @main(%arg0: tensor<8x4xf32>) -> tensor<8x4xf32> {
    %0 = "shardwise.checkpoint"(%arg0) <{names = ["h"], policy = "names", in_shardings = #sdy.sharding_per_value<[<@mesh, [{"a"}, {?}]>]>, out_shardings = #sdy.sharding_per_value<[<@mesh, [{?}, {"b"}]>]>}> ({
    ^bb0(%arg1: tensor<8x4xf32>):
      %1 = "shardwise.custom_derivative"(%arg1) <{derivative = 0 : i64, name = "f"}> ({
      ^bb0(%arg2: tensor<8x4xf32>):
        %2 = stablehlo.tanh %arg2 : tensor<8x4xf32>
        stablehlo.return %2 : tensor<8x4xf32>
      }) : (tensor<8x4xf32>) -> tensor<8x4xf32>
      stablehlo.return %1 : tensor<8x4xf32>
    }) : (tensor<8x4xf32>) -> tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
}
// ---- after inline_calls ----
module {
  sdy.mesh @mesh = <["a"=2, "b"=2]>
  func.func public @main(%arg0: tensor<8x4xf32>) -> tensor<8x4xf32> {
    %0 = sdy.sharding_constraint %arg0 <@mesh, [{"a"}, {?}]> : tensor<8x4xf32>
    %1 = stablehlo.tanh %0 : tensor<8x4xf32>
    %2 = sdy.sharding_constraint %1 <@mesh, [{?}, {"b"}]> : tensor<8x4xf32>
    return %2 : tensor<8x4xf32>
  }
}
