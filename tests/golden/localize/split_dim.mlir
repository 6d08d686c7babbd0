// A reshape that splits a sharded dim is a reshape of the blocks.
module @jit_split_dim attributes {shardwise.stage = "resharded"} {
  sdy.mesh @mesh = <["x"=8]>
  func.func public @main(%arg0: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<4x2x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)4}, {"x":(4)2}, {}]>}) {
    %0 = stablehlo.reshape %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x":(1)4}, {"x":(4)2}, {}]>]>} : (tensor<8x6xf32>) -> tensor<4x2x6xf32>
    return %0 : tensor<4x2x6xf32>
  }
}
// ---- after localize ----
module @jit_split_dim attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=8]>
  func.func public @main(%arg0: tensor<1x6xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 1, {}: 6]>}) -> (tensor<1x1x6xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x":(1)4}: 1, {"x":(4)2}: 1, {}: 6]>}) {
    %0 = stablehlo.reshape %arg0 : (tensor<1x6xf32>) -> tensor<1x1x6xf32>
    return %0 : tensor<1x1x6xf32>
  }
}
