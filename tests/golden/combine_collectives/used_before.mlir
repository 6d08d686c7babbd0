// The second sum is of values that the first one makes, so that they stay apart.
module @used_before attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<32xf32>) -> tensor<32xf32> {
    %0 = "shardwise.all_reduce"(%arg0) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "sum", cause = "reduction in dot_general"}> : (tensor<32xf32>) -> tensor<32xf32>
    %1 = stablehlo.tanh %0 : tensor<32xf32>
    %2 = "shardwise.all_reduce"(%1) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "sum", cause = "reduction in dot_general"}> : (tensor<32xf32>) -> tensor<32xf32>
    return %2 : tensor<32xf32>
  }
}
// ---- after combine_collectives ----
module @used_before attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<32xf32>) -> tensor<32xf32> {
    %0 = "shardwise.all_reduce"(%arg0) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "sum", cause = "reduction in dot_general"}> : (tensor<32xf32>) -> tensor<32xf32>
    %1 = stablehlo.tanh %0 : tensor<32xf32>
    %2 = "shardwise.all_reduce"(%1) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "sum", cause = "reduction in dot_general"}> : (tensor<32xf32>) -> tensor<32xf32>
    return %2 : tensor<32xf32>
  }
}
