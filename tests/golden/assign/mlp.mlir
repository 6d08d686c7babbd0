// The second product sums over the sharded hidden dim: it stays unreduced until the reshard that its result asks for.
module @jit_mlp {
  sdy.mesh @mesh = <["data"=4, "model"=2]>
  func.func public @main(%arg0: tensor<64x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}, %arg1: tensor<32x128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>}, %arg2: tensor<128x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>}) -> (tensor<64x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) {
    %0 = sdy.sharding_constraint %arg0 <@mesh, [{"data"}, {}]> : tensor<64x32xf32>
    %1 = sdy.sharding_constraint %arg1 <@mesh, [{}, {"model"}]> : tensor<32x128xf32>
    %2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {"model"}]>]>} : (tensor<64x32xf32>, tensor<32x128xf32>) -> tensor<64x128xf32>
    %3 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {"model"}]>]>} dense<0.000000e+00> : tensor<64x128xf32>
    %4 = stablehlo.maximum %2, %3 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {"model"}]>]>} : tensor<64x128xf32>
    %5 = stablehlo.dot_general %4, %arg2, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {}]>]>} : (tensor<64x128xf32>, tensor<128x32xf32>) -> tensor<64x32xf32>
    return %5 : tensor<64x32xf32>
  }
}
// ---- after assign ----
module @jit_mlp attributes {shardwise.stage = "assigned"} {
  sdy.mesh @mesh = <["data"=4, "model"=2]>
  func.func public @main(%arg0: tensor<64x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}, %arg1: tensor<32x128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>}, %arg2: tensor<128x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>}) -> (tensor<64x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {"model"}]>]>} : (tensor<64x32xf32>, tensor<32x128xf32>) -> tensor<64x128xf32>
    %1 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {"model"}]>]>} dense<0.000000e+00> : tensor<64x128xf32>
    %2 = stablehlo.maximum %0, %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {"model"}]>]>} : tensor<64x128xf32>
    %3 = stablehlo.dot_general %2, %arg2, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {}], unreduced={"model"}>]>} : (tensor<64x128xf32>, tensor<128x32xf32>) -> tensor<64x32xf32>
    %4 = sdy.reshard %3 <@mesh, [{"data"}, {}]> {cause = "reduction in dot_general"} : tensor<64x32xf32>
    return %4 : tensor<64x32xf32>
  }
}
