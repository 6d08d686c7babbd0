// Tiles that do not nest change places in one exchange: gathers and permutes would send more.
module @"jit_<lambda>" attributes {shardwise.stage = "assigned"} {
  sdy.mesh @mesh = <["x"=3, "y"=4]>
  func.func public @main(%arg0: tensor<12x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> (tensor<12x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}) {
    %0 = sdy.reshard %arg0 <@mesh, [{"y"}, {"x"}]> {cause = "result 0"} : tensor<12x12xf32>
    return %0 : tensor<12x12xf32>
  }
}
// ---- after plan_reshards ----
module @"jit_<lambda>" attributes {shardwise.stage = "resharded"} {
  sdy.mesh @mesh = <["x"=3, "y"=4]>
  func.func public @main(%arg0: tensor<12x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> (tensor<12x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}) {
    %0 = "shardwise.exchange"(%arg0) <{cause = "result 0"}> {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {"x"}]>]>} : (tensor<12x12xf32>) -> tensor<12x12xf32>
    return %0 : tensor<12x12xf32>
  }
}
