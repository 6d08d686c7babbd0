// No axes of the program's mesh have this order of devices, so the annotation stays on its own mesh.
module {
  sdy.mesh @mesh = <["x"=4]>
  sdy.mesh @other = <["p"=4], device_ids=[1, 3, 0, 2]>
  func.func public @main(%arg0: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@other, [{}, {"p"}]>}) {
    %0 = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<16x8xf32>
    return %0 : tensor<16x8xf32>
  }
}
// ---- after choose ----
module {
  sdy.mesh @mesh = <["x"=4]>
  sdy.mesh @other = <["p"=4], device_ids=[1, 3, 0, 2]>
  func.func public @main(%arg0: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@other, [{}, {"p"}]>}) {
    %0 = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<16x8xf32>
    return %0 : tensor<16x8xf32>
  }
}
