// Along other axes, by another reducer, of another dtype or after a gather of other dims: each kind of message is its own.
module @other_messages attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  func.func public @main(%arg0: tensor<32xf32>, %arg1: tensor<32xf32>, %arg2: tensor<32xf64>, %arg3: tensor<32xf32>, %arg4: tensor<32xf32>, %arg5: tensor<16x32xf32>) -> (tensor<32xf32>, tensor<32xf32>, tensor<32xf64>, tensor<32xf32>, tensor<128xf32>, tensor<16x128xf32>, tensor<128xf32>) {
    %0 = "shardwise.all_reduce"(%arg0) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "sum", cause = "reduction in dot_general"}> : (tensor<32xf32>) -> tensor<32xf32>
    %1 = "shardwise.all_reduce"(%arg1) <{axes = #sdy<axis_ref_list{"y"}>, mesh = @mesh, reducer = "sum", cause = "reduction in dot_general"}> : (tensor<32xf32>) -> tensor<32xf32>
    %2 = "shardwise.all_reduce"(%arg2) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "sum", cause = "reduction in dot_general"}> : (tensor<32xf64>) -> tensor<32xf64>
    %3 = "shardwise.all_reduce"(%arg3) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "max", cause = "reduction in dot_general"}> : (tensor<32xf32>) -> tensor<32xf32>
    %4 = "shardwise.all_gather"(%arg4) <{gather = #sdy<list_of_axis_ref_lists[{"x"}]>, mesh = @mesh, cause = "operand 1 of dot_general"}> : (tensor<32xf32>) -> tensor<128xf32>
    %5 = "shardwise.all_gather"(%arg3) <{gather = #sdy<list_of_axis_ref_lists[{"x"}]>, mesh = @mesh, cause = "operand 1 of dot_general"}> : (tensor<32xf32>) -> tensor<128xf32>
    %6 = "shardwise.all_gather"(%arg5) <{gather = #sdy<list_of_axis_ref_lists[{}, {"x"}]>, mesh = @mesh, cause = "operand 1 of dot_general"}> : (tensor<16x32xf32>) -> tensor<16x128xf32>
    return %0, %1, %2, %3, %4, %6, %5 : tensor<32xf32>, tensor<32xf32>, tensor<32xf64>, tensor<32xf32>, tensor<128xf32>, tensor<16x128xf32>, tensor<128xf32>
  }
}
// ---- after combine_collectives ----
module @other_messages attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  func.func public @main(%arg0: tensor<32xf32>, %arg1: tensor<32xf32>, %arg2: tensor<32xf64>, %arg3: tensor<32xf32>, %arg4: tensor<32xf32>, %arg5: tensor<16x32xf32>) -> (tensor<32xf32>, tensor<32xf32>, tensor<32xf64>, tensor<32xf32>, tensor<128xf32>, tensor<16x128xf32>, tensor<128xf32>) {
    %0 = "shardwise.all_reduce"(%arg0) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "sum", cause = "reduction in dot_general"}> : (tensor<32xf32>) -> tensor<32xf32>
    %1 = "shardwise.all_reduce"(%arg1) <{axes = #sdy<axis_ref_list{"y"}>, mesh = @mesh, reducer = "sum", cause = "reduction in dot_general"}> : (tensor<32xf32>) -> tensor<32xf32>
    %2 = "shardwise.all_reduce"(%arg2) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "sum", cause = "reduction in dot_general"}> : (tensor<32xf64>) -> tensor<32xf64>
    %3 = "shardwise.all_reduce"(%arg3) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "max", cause = "reduction in dot_general"}> : (tensor<32xf32>) -> tensor<32xf32>
    %4:2 = "shardwise.all_gather"(%arg4, %arg3) <{gather = #sdy<list_of_axis_ref_lists[{"x"}]>, mesh = @mesh, cause = ["operand 1 of dot_general", "operand 1 of dot_general"]}> : (tensor<32xf32>, tensor<32xf32>) -> (tensor<128xf32>, tensor<128xf32>)
    %5 = "shardwise.all_gather"(%arg5) <{gather = #sdy<list_of_axis_ref_lists[{}, {"x"}]>, mesh = @mesh, cause = "operand 1 of dot_general"}> : (tensor<16x32xf32>) -> tensor<16x128xf32>
    return %0, %1, %2, %3, %4#0, %5, %4#1 : tensor<32xf32>, tensor<32xf32>, tensor<32xf64>, tensor<32xf32>, tensor<128xf32>, tensor<16x128xf32>, tensor<128xf32>
  }
}
