// What is gathered again stays where it saves memory; a sum that the user marks so is not combined either.
module @again attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<32xf32>, %arg1: tensor<32xf32>, %arg2: tensor<32xf32>) -> (tensor<32xf32>, tensor<32xf32>, tensor<32xf32>) {
    %0 = "shardwise.all_reduce"(%arg0) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "sum", cause = "reduction in dot_general"}> : (tensor<32xf32>) -> tensor<32xf32>
    %1 = "shardwise.all_reduce"(%arg2) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "sum", cause = "reduction in dot_general"}> : (tensor<32xf32>) -> tensor<32xf32>
    %2 = "shardwise.all_reduce"(%arg1) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "sum", cause = "reduction in dot_general"}> {shardwise.again = 1 : i64} : (tensor<32xf32>) -> tensor<32xf32>
    return %0, %1, %2 : tensor<32xf32>, tensor<32xf32>, tensor<32xf32>
  }
}
// ---- after combine_collectives ----
module @again attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<32xf32>, %arg1: tensor<32xf32>, %arg2: tensor<32xf32>) -> (tensor<32xf32>, tensor<32xf32>, tensor<32xf32>) {
    %0:2 = "shardwise.all_reduce"(%arg0, %arg2) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "sum", cause = ["reduction in dot_general", "reduction in dot_general"]}> : (tensor<32xf32>, tensor<32xf32>) -> (tensor<32xf32>, tensor<32xf32>)
    %1 = "shardwise.all_reduce"(%arg1) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "sum", cause = "reduction in dot_general"}> {shardwise.again = 1 : i64} : (tensor<32xf32>) -> tensor<32xf32>
    return %0#0, %0#1, %1 : tensor<32xf32>, tensor<32xf32>, tensor<32xf32>
  }
}
