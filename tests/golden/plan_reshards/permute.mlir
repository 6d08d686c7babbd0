// The same axes in another order: one collective_permute.
module @jit_permute attributes {shardwise.stage = "assigned"} {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main(%arg0: tensor<16x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>}) -> (tensor<16x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "x"}, {}]>}) {
    %0 = sdy.reshard %arg0 <@mesh, [{"y", "x"}, {}]> {cause = "annotation"} : tensor<16x3xf32>
    return %0 : tensor<16x3xf32>
  }
}
// ---- after plan_reshards ----
module @jit_permute attributes {shardwise.stage = "resharded"} {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main(%arg0: tensor<16x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>}) -> (tensor<16x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "x"}, {}]>}) {
    %0 = sdy.collective_permute %arg0 out_sharding=<@mesh, [{"y", "x"}, {}]> {cause = "annotation"} : tensor<16x3xf32>
    return %0 : tensor<16x3xf32>
  }
}
