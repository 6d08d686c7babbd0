// Windows of 5 rows at every second one: tiles of the exchange overlap, and the padding is the init value.
module @jit_windows attributes {shardwise.stage = "resharded"} {
  sdy.mesh @mesh = <["x"=8]>
  func.func public @main(%arg0: tensor<64x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %arg1: tensor<f32> {sdy.sharding = #sdy.sharding<@mesh, []>}) -> (tensor<32x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
    %0 = "stablehlo.reduce_window"(%arg0, %arg1) <{window_dimensions = array<i64: 5, 1>, window_strides = array<i64: 2, 1>, window_dilations = array<i64: 1, 1>, base_dilations = array<i64: 1, 1>, padding = dense<[[2, 2], [0, 0]]> : tensor<2x2xi64>, method = "exchange"}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %1 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<64x4xf32>, tensor<f32>) -> tensor<32x4xf32>
    return %0 : tensor<32x4xf32>
  }
}
// ---- after localize ----
module @jit_windows attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=8]>
  func.func public @main(%arg0: tensor<8x4xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 8, {}: 4]>}, %arg1: tensor<f32>) -> (tensor<4x4xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 4, {}: 4]>}) {
    %0 = "shardwise.exchange"(%arg0, %arg1) <{from = [[{axes = #sdy<axis_ref_list{"x"}>, offset = -2 : i64}, {}]], mesh = @mesh, to = [{axes = #sdy<axis_ref_list{"x"}>, rows = 11 : i64, size = 67 : i64, step = 8 : i64}, {rows = 4 : i64}], cause = "exchange of reduce_window along dim 0"}> : (tensor<8x4xf32>, tensor<f32>) -> tensor<11x4xf32>
    %1 = "stablehlo.reduce_window"(%0, %arg1) <{base_dilations = array<i64: 1, 1>, padding = dense<[[0, 0], [0, 0]]> : tensor<2x2xi64>, window_dilations = array<i64: 1, 1>, window_dimensions = array<i64: 5, 1>, window_strides = array<i64: 2, 1>}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %2 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<11x4xf32>, tensor<f32>) -> tensor<4x4xf32>
    return %1 : tensor<4x4xf32>
  }
}
