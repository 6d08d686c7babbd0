// Reverse of 33 rows in blocks of 5.
module @"jit_<lambda>" attributes {shardwise.stage = "resharded"} {
  sdy.mesh @mesh = <["x"=8]>
  func.func public @main(%arg0: tensor<33x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<33x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
    %0 = stablehlo.reverse %arg0, dims = [0] {method = "exchange", sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<33x4xf32>
    return %0 : tensor<33x4xf32>
  }
}
// ---- after localize ----
module @"jit_<lambda>" attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=8]>
  func.func public @main(%arg0: tensor<5x4xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 5, {}: 4]> : tensor<33x4xf32>}) -> (tensor<5x4xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 5, {}: 4]> : tensor<33x4xf32>}) {
    %0 = "shardwise.exchange"(%arg0) <{from = [[{axes = #sdy<axis_ref_list{"x"}>, offset = 32 : i64, scale = -1 : i64, size = 33 : i64}, {}]], mesh = @mesh, to = [{axes = #sdy<axis_ref_list{"x"}>, rows = 5 : i64, size = 33 : i64}, {rows = 4 : i64}], cause = "exchange of reverse along dim 0"}> : (tensor<5x4xf32>) -> tensor<5x4xf32>
    return %0 : tensor<5x4xf32>
  }
}
