// Equal gathers of one value are one, those of another value or along another axis are not.
module @equal_gathers attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main(%arg0: tensor<4x3xf32>, %arg1: tensor<4x3xf32>) -> (tensor<8x3xf32>, tensor<8x3xf32>, tensor<8x3xf32>, tensor<16x3xf32>) {
    %0 = "shardwise.all_gather"(%arg0) <{gather = #sdy<list_of_axis_ref_lists[{"x"}, {}]>, mesh = @mesh, cause = "annotation"}> : (tensor<4x3xf32>) -> tensor<8x3xf32>
    %1 = "shardwise.all_gather"(%arg0) <{gather = #sdy<list_of_axis_ref_lists[{"x"}, {}]>, mesh = @mesh, cause = "annotation"}> : (tensor<4x3xf32>) -> tensor<8x3xf32>
    %2 = "shardwise.all_gather"(%arg1) <{gather = #sdy<list_of_axis_ref_lists[{"x"}, {}]>, mesh = @mesh, cause = "annotation"}> : (tensor<4x3xf32>) -> tensor<8x3xf32>
    %3 = "shardwise.all_gather"(%arg0) <{gather = #sdy<list_of_axis_ref_lists[{"y"}, {}]>, mesh = @mesh, cause = "annotation"}> : (tensor<4x3xf32>) -> tensor<16x3xf32>
    %4 = stablehlo.exponential %0 : tensor<8x3xf32>
    %5 = stablehlo.exponential %1 : tensor<8x3xf32>
    return %4, %5, %2, %3 : tensor<8x3xf32>, tensor<8x3xf32>, tensor<8x3xf32>, tensor<16x3xf32>
  }
}
// ---- after optimize_collectives ----
module @equal_gathers attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main(%arg0: tensor<4x3xf32>, %arg1: tensor<4x3xf32>) -> (tensor<8x3xf32>, tensor<8x3xf32>, tensor<8x3xf32>, tensor<16x3xf32>) {
    %0 = "shardwise.all_gather"(%arg0) <{gather = #sdy<list_of_axis_ref_lists[{"x"}, {}]>, mesh = @mesh, cause = "annotation"}> : (tensor<4x3xf32>) -> tensor<8x3xf32>
    %1 = "shardwise.all_gather"(%arg1) <{gather = #sdy<list_of_axis_ref_lists[{"x"}, {}]>, mesh = @mesh, cause = "annotation"}> : (tensor<4x3xf32>) -> tensor<8x3xf32>
    %2 = "shardwise.all_gather"(%arg0) <{gather = #sdy<list_of_axis_ref_lists[{"y"}, {}]>, mesh = @mesh, cause = "annotation"}> : (tensor<4x3xf32>) -> tensor<16x3xf32>
    %3 = stablehlo.exponential %0 : tensor<8x3xf32>
    return %3, %3, %1, %2 : tensor<8x3xf32>, tensor<8x3xf32>, tensor<8x3xf32>, tensor<16x3xf32>
  }
}
