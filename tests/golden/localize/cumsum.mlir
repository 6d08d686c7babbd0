// 17 numbers over 4 devices: own running sums, the totals of all shards, those before its own.
module @jit_cumsum attributes {shardwise.stage = "resharded"} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<17xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<17xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
    %0 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} dense<0.000000e+00> : tensor<f32>
    %1 = "stablehlo.reduce_window"(%arg0, %0) <{base_dilations = array<i64: 1>, method = "gathered totals", padding = dense<[[16, 0]]> : tensor<1x2xi64>, window_dilations = array<i64: 1>, window_dimensions = array<i64: 17>, window_strides = array<i64: 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %2 = stablehlo.add %arg1, %arg2 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<17xf32>, tensor<f32>) -> tensor<17xf32>
    return %1 : tensor<17xf32>
  }
}
// ---- after localize ----
module @jit_cumsum attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<5xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 5]> : tensor<17xf32>}) -> (tensor<5xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 5]> : tensor<17xf32>}) {
    %0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = "shardwise.axis_index"() <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh}> : () -> tensor<i32>
    %2 = stablehlo.constant dense<5> : tensor<i32>
    %3 = stablehlo.multiply %1, %2 : tensor<i32>
    %4 = stablehlo.constant dense<17> : tensor<i32>
    %5 = stablehlo.subtract %4, %3 : tensor<i32>
    %6 = stablehlo.iota dim = 0 : tensor<5xi32>
    %7 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %8 = stablehlo.compare LT, %6, %7 : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
    %9 = stablehlo.constant dense<0.000000e+00> : tensor<5xf32>
    %10 = stablehlo.select %8, %arg0, %9 : tensor<5xi1>, tensor<5xf32>
    %11 = "stablehlo.reduce_window"(%10, %0) <{base_dilations = array<i64: 1>, padding = dense<[[4, 0]]> : tensor<1x2xi64>, window_dilations = array<i64: 1>, window_dimensions = array<i64: 5>, window_strides = array<i64: 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %12 = stablehlo.add %arg1, %arg2 : tensor<f32>
      stablehlo.return %12 : tensor<f32>
    }) : (tensor<5xf32>, tensor<f32>) -> tensor<5xf32>
    %13 = stablehlo.slice %11 [4:5] : (tensor<5xf32>) -> tensor<1xf32>
    %14 = "shardwise.all_gather"(%13) <{gather = #sdy<list_of_axis_ref_lists[{"x"}]>, mesh = @mesh, cause = "gathered totals of reduce_window along dim 0"}> : (tensor<1xf32>) -> tensor<4xf32>
    %15 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %16 = stablehlo.iota dim = 0 : tensor<4xi32>
    %17 = stablehlo.compare LT, %16, %15 : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %18 = stablehlo.constant dense<0.000000e+00> : tensor<4xf32>
    %19 = stablehlo.select %17, %14, %18 : tensor<4xi1>, tensor<4xf32>
    %20 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %21 = stablehlo.reduce(%19 init: %20) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %22 = stablehlo.reshape %21 : (tensor<f32>) -> tensor<1xf32>
    %23 = stablehlo.broadcast_in_dim %22, dims = [0] : (tensor<1xf32>) -> tensor<5xf32>
    %24 = stablehlo.add %23, %11 : tensor<5xf32>
    return %24 : tensor<5xf32>
  }
}
