// A strided slice of some rows: each device receives the rows of its block of the result.
module @"jit_<lambda>" attributes {shardwise.stage = "resharded"} {
  sdy.mesh @mesh = <["x"=8]>
  func.func public @main(%arg0: tensor<64x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<20x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
    %0 = stablehlo.slice %arg0 [1:59:3, 0:4] {method = "exchange", sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<64x4xf32>) -> tensor<20x4xf32>
    return %0 : tensor<20x4xf32>
  }
}
// ---- after localize ----
module @"jit_<lambda>" attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=8]>
  func.func public @main(%arg0: tensor<8x4xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 8, {}: 4]>}) -> (tensor<3x4xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 3, {}: 4]> : tensor<20x4xf32>}) {
    %0 = "shardwise.exchange"(%arg0) <{from = [[{axes = #sdy<axis_ref_list{"x"}>, offset = 1 : i64, scale = 3 : i64}, {}]], mesh = @mesh, to = [{axes = #sdy<axis_ref_list{"x"}>, rows = 3 : i64, size = 20 : i64}, {rows = 4 : i64}], cause = "exchange of slice along dim 0"}> : (tensor<8x4xf32>) -> tensor<3x4xf32>
    return %0 : tensor<3x4xf32>
  }
}
