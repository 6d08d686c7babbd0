// x of 8 devices splits where the dim does: its first 4 go to the dim of 4, the rest to the dim of 2.
module @jit_split_dim {
  sdy.mesh @mesh = <["x"=8]>
  func.func public @main(%arg0: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<4x2x6xf32> {
    %0 = stablehlo.reshape %arg0 : (tensor<8x6xf32>) -> tensor<4x2x6xf32>
    return %0 : tensor<4x2x6xf32>
  }
}
// ---- after propagate ----
module @jit_split_dim {
  sdy.mesh @mesh = <["x"=8]>
  func.func public @main(%arg0: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<4x2x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)4}, {"x":(4)2}, {}]>}) {
    %0 = stablehlo.reshape %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x":(1)4}, {"x":(4)2}, {}]>]>} : (tensor<8x6xf32>) -> tensor<4x2x6xf32>
    return %0 : tensor<4x2x6xf32>
  }
}
