// Shapes of one device: 64 / 4 rows, 128 / 2 hidden columns; no axis_index, since every dim divides.
module @jit_mlp attributes {shardwise.stage = "resharded"} {
  sdy.mesh @mesh = <["data"=4, "model"=2]>
  func.func public @main(%arg0: tensor<64x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}, %arg1: tensor<32x128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>}, %arg2: tensor<128x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>}) -> (tensor<64x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {"model"}]>]>} : (tensor<64x32xf32>, tensor<32x128xf32>) -> tensor<64x128xf32>
    %1 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {"model"}]>]>} dense<0.000000e+00> : tensor<64x128xf32>
    %2 = stablehlo.maximum %0, %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {"model"}]>]>} : tensor<64x128xf32>
    %3 = stablehlo.dot_general %2, %arg2, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {}], unreduced={"model"}>]>} : (tensor<64x128xf32>, tensor<128x32xf32>) -> tensor<64x32xf32>
    %4 = sdy.all_reduce {"model"} %3 out_sharding=<@mesh, [{"data"}, {}]> {cause = "reduction in dot_general"} : tensor<64x32xf32>
    return %4 : tensor<64x32xf32>
  }
}
// ---- after localize ----
module @jit_mlp attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["data"=4, "model"=2]>
  func.func public @main(%arg0: tensor<16x32xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"data"}: 16, {}: 32]>}, %arg1: tensor<32x64xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 32, {"model"}: 64]>}, %arg2: tensor<64x32xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"model"}: 64, {}: 32]>}) -> (tensor<16x32xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"data"}: 16, {}: 32]>}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<16x32xf32>, tensor<32x64xf32>) -> tensor<16x64xf32>
    %1 = stablehlo.constant dense<0.000000e+00> : tensor<16x64xf32>
    %2 = stablehlo.maximum %0, %1 : tensor<16x64xf32>
    %3 = stablehlo.dot_general %2, %arg2, contracting_dims = [1] x [0] : (tensor<16x64xf32>, tensor<64x32xf32>) -> tensor<16x32xf32>
    %4 = "shardwise.all_reduce"(%3) <{axes = #sdy<axis_ref_list{"model"}>, mesh = @mesh, reducer = "sum", cause = "reduction in dot_general"}> : (tensor<16x32xf32>) -> tensor<16x32xf32>
    return %4 : tensor<16x32xf32>
  }
}
