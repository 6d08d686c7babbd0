// Reduce-scatters and gathers have a result for each operand, too.
module @scattered attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<16xf32>, %arg1: tensor<32xf32>) -> (tensor<16xf32>, tensor<32xf32>) {
    %0 = "shardwise.reduce_scatter"(%arg0) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "sum", scatter = #sdy<list_of_axis_ref_lists[{"x"}]>, cause = "result 0"}> : (tensor<16xf32>) -> tensor<4xf32>
    %1 = "shardwise.reduce_scatter"(%arg1) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "sum", scatter = #sdy<list_of_axis_ref_lists[{"x"}]>, cause = "result 1"}> : (tensor<32xf32>) -> tensor<8xf32>
    %2 = "shardwise.all_gather"(%0) <{gather = #sdy<list_of_axis_ref_lists[{"x"}]>, mesh = @mesh, cause = "result 0"}> : (tensor<4xf32>) -> tensor<16xf32>
    %3 = "shardwise.all_gather"(%1) <{gather = #sdy<list_of_axis_ref_lists[{"x"}]>, mesh = @mesh, cause = "result 1"}> : (tensor<8xf32>) -> tensor<32xf32>
    return %2, %3 : tensor<16xf32>, tensor<32xf32>
  }
}
// ---- after combine_collectives ----
module @scattered attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<16xf32>, %arg1: tensor<32xf32>) -> (tensor<16xf32>, tensor<32xf32>) {
    %0 = "shardwise.reduce_scatter"(%arg0) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "sum", scatter = #sdy<list_of_axis_ref_lists[{"x"}]>, cause = "result 0"}> : (tensor<16xf32>) -> tensor<4xf32>
    %1 = "shardwise.reduce_scatter"(%arg1) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "sum", scatter = #sdy<list_of_axis_ref_lists[{"x"}]>, cause = "result 1"}> : (tensor<32xf32>) -> tensor<8xf32>
    %2 = "shardwise.all_gather"(%0) <{gather = #sdy<list_of_axis_ref_lists[{"x"}]>, mesh = @mesh, cause = "result 0"}> : (tensor<4xf32>) -> tensor<16xf32>
    %3 = "shardwise.all_gather"(%1) <{gather = #sdy<list_of_axis_ref_lists[{"x"}]>, mesh = @mesh, cause = "result 1"}> : (tensor<8xf32>) -> tensor<32xf32>
    return %2, %3 : tensor<16xf32>, tensor<32xf32>
  }
}
