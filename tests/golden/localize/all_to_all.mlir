// 10 columns over 4 are blocks of 3: padded to 12 before the exchange, so the last device has 1 column and 2 of padding.
module @jit_all_to_all attributes {shardwise.stage = "resharded"} {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main(%arg0: tensor<8x10xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}) -> (tensor<8x10xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}) {
    %0 = sdy.all_to_all [{"y"}: 0->1] %arg0 out_sharding=<@mesh, [{}, {"y"}]> {cause = "annotation"} : tensor<8x10xf32>
    return %0 : tensor<8x10xf32>
  }
}
// ---- after localize ----
module @jit_all_to_all attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main(%arg0: tensor<2x10xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"y"}: 2, {}: 10]>}) -> (tensor<8x3xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 8, {"y"}: 3]> : tensor<8x10xf32>, shardwise.padding = dense<0.000000e+00> : tensor<f32>}) {
    %0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.pad %arg0, %0, low = [0, 0], high = [0, 2], interior = [0, 0] : (tensor<2x10xf32>, tensor<f32>) -> tensor<2x12xf32>
    %2 = "shardwise.all_to_all"(%1) <{mesh = @mesh, moves = [{axes = #sdy<axis_ref_list{"y"}>, from_dim = 0 : i64, to_dim = 1 : i64}], cause = "annotation"}> : (tensor<2x12xf32>) -> tensor<8x3xf32>
    return %2 : tensor<8x3xf32>
  }
}
