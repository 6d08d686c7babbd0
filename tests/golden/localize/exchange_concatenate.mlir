// Both operands of a concatenation are sharded: one exchange reads them.
module @"jit_<lambda>" attributes {shardwise.stage = "resharded"} {
  sdy.mesh @mesh = <["x"=8]>
  func.func public @main(%arg0: tensor<32x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %arg1: tensor<16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<48x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
    %0 = stablehlo.concatenate %arg0, %arg1, dim = 0 {method = "exchange", sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<32x4xf32>, tensor<16x4xf32>) -> tensor<48x4xf32>
    return %0 : tensor<48x4xf32>
  }
}
// ---- after localize ----
module @"jit_<lambda>" attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=8]>
  func.func public @main(%arg0: tensor<4x4xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 4, {}: 4]>}, %arg1: tensor<2x4xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 2, {}: 4]>}) -> (tensor<6x4xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 6, {}: 4]>}) {
    %0 = "shardwise.exchange"(%arg0, %arg1) <{from = [[{axes = #sdy<axis_ref_list{"x"}>, end = 32 : i64}, {}], [{axes = #sdy<axis_ref_list{"x"}>, begin = 32 : i64, offset = -32 : i64}, {}]], mesh = @mesh, to = [{axes = #sdy<axis_ref_list{"x"}>, rows = 6 : i64}, {rows = 4 : i64}], cause = "exchange of concatenate along dim 0"}> : (tensor<4x4xf32>, tensor<2x4xf32>) -> tensor<6x4xf32>
    return %0 : tensor<6x4xf32>
  }
}
