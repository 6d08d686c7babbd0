// Rows in front of the first and past the last: the scalar fills what no device has.
module @"jit_<lambda>" attributes {shardwise.stage = "resharded"} {
  sdy.mesh @mesh = <["x"=8]>
  func.func public @main(%arg0: tensor<64x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<72x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
    %0 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.pad %arg0, %0, low = [3, 0], high = [5, 0], interior = [0, 0] {method = "exchange", sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<64x4xf32>, tensor<f32>) -> tensor<72x4xf32>
    return %1 : tensor<72x4xf32>
  }
}
// ---- after localize ----
module @"jit_<lambda>" attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=8]>
  func.func public @main(%arg0: tensor<8x4xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 8, {}: 4]>}) -> (tensor<9x4xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 9, {}: 4]>}) {
    %0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = "shardwise.exchange"(%arg0, %0) <{from = [[{axes = #sdy<axis_ref_list{"x"}>, offset = -3 : i64}, {}]], mesh = @mesh, to = [{axes = #sdy<axis_ref_list{"x"}>, rows = 9 : i64}, {rows = 4 : i64}], cause = "exchange of pad along dim 0"}> : (tensor<8x4xf32>, tensor<f32>) -> tensor<9x4xf32>
    return %1 : tensor<9x4xf32>
  }
}
