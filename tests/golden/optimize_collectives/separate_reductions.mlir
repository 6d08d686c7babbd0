// Reductions of different values stay two.
module @jit_separate_reductions attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main(%arg0: tensor<4x3xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 4, {}: 3]>}, %arg1: tensor<4x3xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 4, {}: 3]>}) -> (tensor<3xf32>, tensor<3xf32>) {
    %0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%arg0 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<4x3xf32>, tensor<f32>) -> tensor<3xf32>
    %2 = stablehlo.reduce(%arg1 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<4x3xf32>, tensor<f32>) -> tensor<3xf32>
    %3 = "shardwise.all_reduce"(%1) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "sum", cause = "reduction in reduce"}> : (tensor<3xf32>) -> tensor<3xf32>
    %4 = "shardwise.all_reduce"(%2) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "sum", cause = "reduction in reduce"}> : (tensor<3xf32>) -> tensor<3xf32>
    return %3, %4 : tensor<3xf32>, tensor<3xf32>
  }
}
// ---- after optimize_collectives ----
module @jit_separate_reductions attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main(%arg0: tensor<4x3xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 4, {}: 3]>}, %arg1: tensor<4x3xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 4, {}: 3]>}) -> (tensor<3xf32>, tensor<3xf32>) {
    %0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%arg0 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<4x3xf32>, tensor<f32>) -> tensor<3xf32>
    %2 = stablehlo.reduce(%arg1 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<4x3xf32>, tensor<f32>) -> tensor<3xf32>
    %3 = "shardwise.all_reduce"(%1) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "sum", cause = "reduction in reduce"}> : (tensor<3xf32>) -> tensor<3xf32>
    %4 = "shardwise.all_reduce"(%2) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "sum", cause = "reduction in reduce"}> : (tensor<3xf32>) -> tensor<3xf32>
    return %3, %4 : tensor<3xf32>, tensor<3xf32>
  }
}
