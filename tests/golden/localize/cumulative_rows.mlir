// Totals of 16 rows over 8 devices: each device scans those of two rows for all shards, which takes two exchanges.
module @jit_cummax attributes {shardwise.stage = "resharded"} {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main(%arg0: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y", "x"}]>}) -> (tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y", "x"}]>}) {
    %0 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} dense<0xFF800000> : tensor<f32>
    %1 = "stablehlo.reduce_window"(%arg0, %0) <{base_dilations = array<i64: 1, 1>, method = "totals", padding = dense<[[0, 0], [31, 0]]> : tensor<2x2xi64>, window_dilations = array<i64: 1, 1>, window_dimensions = array<i64: 1, 32>, window_strides = array<i64: 1, 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %2 = stablehlo.maximum %arg1, %arg2 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"y", "x"}]>]>} : (tensor<16x32xf32>, tensor<f32>) -> tensor<16x32xf32>
    return %1 : tensor<16x32xf32>
  }
}
// ---- after localize ----
module @jit_cummax attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main(%arg0: tensor<16x4xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 16, {"y", "x"}: 4]>}) -> (tensor<16x4xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 16, {"y", "x"}: 4]>}) {
    %0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %1 = "stablehlo.reduce_window"(%arg0, %0) <{base_dilations = array<i64: 1, 1>, padding = dense<[[0, 0], [3, 0]]> : tensor<2x2xi64>, window_dilations = array<i64: 1, 1>, window_dimensions = array<i64: 1, 4>, window_strides = array<i64: 1, 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %2 = stablehlo.maximum %arg1, %arg2 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<16x4xf32>, tensor<f32>) -> tensor<16x4xf32>
    %3 = stablehlo.slice %1 [0:16, 3:4] : (tensor<16x4xf32>) -> tensor<16x1xf32>
    %4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %5 = stablehlo.reshape %3 : (tensor<16x1xf32>) -> tensor<1x16xf32>
    %6 = stablehlo.pad %5, %4, low = [0, 0], high = [0, 0], interior = [0, 0] : (tensor<1x16xf32>, tensor<f32>) -> tensor<1x16xf32>
    %7 = "shardwise.all_to_all"(%6) <{mesh = @mesh, moves = [{axes = #sdy<axis_ref_list{"y", "x"}>, from_dim = 0 : i64, to_dim = 1 : i64}], cause = "totals of reduce_window along dim 1"}> : (tensor<1x16xf32>) -> tensor<8x2xf32>
    %8 = stablehlo.constant dense<0xFF800000> : tensor<1x2xf32>
    %9 = stablehlo.slice %7 [0:7, 0:2] : (tensor<8x2xf32>) -> tensor<7x2xf32>
    %10 = stablehlo.concatenate %8, %9, dim = 0 : (tensor<1x2xf32>, tensor<7x2xf32>) -> tensor<8x2xf32>
    %11 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %12 = "stablehlo.reduce_window"(%10, %11) <{base_dilations = array<i64: 1, 1>, padding = dense<[[7, 0], [0, 0]]> : tensor<2x2xi64>, window_dilations = array<i64: 1, 1>, window_dimensions = array<i64: 8, 1>, window_strides = array<i64: 1, 1>}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      %13 = stablehlo.maximum %arg3, %arg4 : tensor<f32>
      stablehlo.return %13 : tensor<f32>
    }) : (tensor<8x2xf32>, tensor<f32>) -> tensor<8x2xf32>
    %14 = "shardwise.all_to_all"(%12) <{mesh = @mesh, moves = [{axes = #sdy<axis_ref_list{"y", "x"}>, from_dim = 1 : i64, to_dim = 0 : i64}], cause = "totals of reduce_window along dim 1"}> : (tensor<8x2xf32>) -> tensor<1x16xf32>
    %15 = stablehlo.slice %14 [0:1, 0:16] : (tensor<1x16xf32>) -> tensor<1x16xf32>
    %16 = stablehlo.reshape %15 : (tensor<1x16xf32>) -> tensor<16x1xf32>
    %17 = stablehlo.broadcast_in_dim %16, dims = [0, 1] : (tensor<16x1xf32>) -> tensor<16x4xf32>
    %18 = stablehlo.maximum %17, %1 : tensor<16x4xf32>
    return %18 : tensor<16x4xf32>
  }
}
