// The same position asked for twice is one; along other axes it is another.
module @axis_indices attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main() -> (tensor<i32>, tensor<i32>) {
    %0 = "shardwise.axis_index"() <{axes = #sdy<axis_ref_list{"x", "y"}>, mesh = @mesh}> : () -> tensor<i32>
    %1 = "shardwise.axis_index"() <{axes = #sdy<axis_ref_list{"x", "y"}>, mesh = @mesh}> : () -> tensor<i32>
    %2 = "shardwise.axis_index"() <{axes = #sdy<axis_ref_list{"y", "x"}>, mesh = @mesh}> : () -> tensor<i32>
    %3 = stablehlo.add %0, %1 : tensor<i32>
    return %3, %2 : tensor<i32>, tensor<i32>
  }
}
// ---- after optimize_collectives ----
module @axis_indices attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main() -> (tensor<i32>, tensor<i32>) {
    %0 = "shardwise.axis_index"() <{axes = #sdy<axis_ref_list{"x", "y"}>, mesh = @mesh}> : () -> tensor<i32>
    %1 = "shardwise.axis_index"() <{axes = #sdy<axis_ref_list{"y", "x"}>, mesh = @mesh}> : () -> tensor<i32>
    %2 = stablehlo.add %0, %0 : tensor<i32>
    return %2, %1 : tensor<i32>, tensor<i32>
  }
}
