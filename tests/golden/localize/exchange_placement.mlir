// Tiles that do not nest change places in one exchange.
module @"jit_<lambda>" attributes {shardwise.stage = "resharded"} {
  sdy.mesh @mesh = <["x"=3, "y"=4]>
  func.func public @main(%arg0: tensor<12x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> (tensor<12x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}) {
    %0 = "shardwise.exchange"(%arg0) <{cause = "result 0"}> {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {"x"}]>]>} : (tensor<12x12xf32>) -> tensor<12x12xf32>
    return %0 : tensor<12x12xf32>
  }
}
// ---- after localize ----
module @"jit_<lambda>" attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=3, "y"=4]>
  func.func public @main(%arg0: tensor<4x3xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 4, {"y"}: 3]>}) -> (tensor<3x4xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"y"}: 3, {"x"}: 4]>}) {
    %0 = "shardwise.exchange"(%arg0) <{from = [[{axes = #sdy<axis_ref_list{"x"}>}, {axes = #sdy<axis_ref_list{"y"}>}]], mesh = @mesh, to = [{axes = #sdy<axis_ref_list{"y"}>, rows = 3 : i64}, {axes = #sdy<axis_ref_list{"x"}>, rows = 4 : i64}], cause = "result 0"}> : (tensor<4x3xf32>) -> tensor<3x4xf32>
    return %0 : tensor<3x4xf32>
  }
}
