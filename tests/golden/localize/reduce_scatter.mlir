// The reduce_scatter gives each device the columns it keeps.
module @jit_reduce_scatter attributes {shardwise.stage = "resharded"} {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main(%arg0: tensor<6x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}, %arg1: tensor<8x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}) -> (tensor<6x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}], unreduced={"y"}>]>} : (tensor<6x8xf32>, tensor<8x12xf32>) -> tensor<6x12xf32>
    %1 = sdy.reduce_scatter [{}, {"y"}] %0 out_sharding=<@mesh, [{}, {"y"}]> {cause = "reduction in dot_general"} : tensor<6x12xf32>
    return %1 : tensor<6x12xf32>
  }
}
// ---- after localize ----
module @jit_reduce_scatter attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main(%arg0: tensor<6x2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 6, {"y"}: 2]>}, %arg1: tensor<2x12xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"y"}: 2, {}: 12]>}) -> (tensor<6x3xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 6, {"y"}: 3]>}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<6x2xf32>, tensor<2x12xf32>) -> tensor<6x12xf32>
    %1 = "shardwise.reduce_scatter"(%0) <{axes = #sdy<axis_ref_list{"y"}>, mesh = @mesh, reducer = "sum", scatter = #sdy<list_of_axis_ref_lists[{}, {"y"}]>, cause = "reduction in dot_general"}> : (tensor<6x12xf32>) -> tensor<6x3xf32>
    return %1 : tensor<6x3xf32>
  }
}
