// A group has at most combine_bytes: of three sums of 128 bytes, two travel together.
// option combine_bytes=256
module @capped attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<32xf32>, %arg1: tensor<32xf32>, %arg2: tensor<32xf32>) -> (tensor<32xf32>, tensor<32xf32>, tensor<32xf32>) {
    %0 = "shardwise.all_reduce"(%arg0) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "sum", cause = "reduction in dot_general"}> : (tensor<32xf32>) -> tensor<32xf32>
    %1 = "shardwise.all_reduce"(%arg1) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "sum", cause = "reduction in dot_general"}> : (tensor<32xf32>) -> tensor<32xf32>
    %2 = "shardwise.all_reduce"(%arg2) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "sum", cause = "reduction in dot_general"}> : (tensor<32xf32>) -> tensor<32xf32>
    return %0, %1, %2 : tensor<32xf32>, tensor<32xf32>, tensor<32xf32>
  }
}
// ---- after combine_collectives ----
module @capped attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<32xf32>, %arg1: tensor<32xf32>, %arg2: tensor<32xf32>) -> (tensor<32xf32>, tensor<32xf32>, tensor<32xf32>) {
    %0:2 = "shardwise.all_reduce"(%arg0, %arg1) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "sum", cause = ["reduction in dot_general", "reduction in dot_general"]}> : (tensor<32xf32>, tensor<32xf32>) -> (tensor<32xf32>, tensor<32xf32>)
    %1 = "shardwise.all_reduce"(%arg2) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "sum", cause = "reduction in dot_general"}> : (tensor<32xf32>) -> tensor<32xf32>
    return %0#0, %0#1, %1 : tensor<32xf32>, tensor<32xf32>, tensor<32xf32>
  }
}
