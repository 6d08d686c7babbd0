// y moves from rows to columns: one all_to_all.
module @jit_all_to_all attributes {shardwise.stage = "assigned"} {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main(%arg0: tensor<8x10xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}) -> (tensor<8x10xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}) {
    %0 = sdy.reshard %arg0 <@mesh, [{}, {"y"}]> {cause = "annotation"} : tensor<8x10xf32>
    return %0 : tensor<8x10xf32>
  }
}
// ---- after plan_reshards ----
module @jit_all_to_all attributes {shardwise.stage = "resharded"} {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main(%arg0: tensor<8x10xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}) -> (tensor<8x10xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}) {
    %0 = sdy.all_to_all [{"y"}: 0->1] %arg0 out_sharding=<@mesh, [{}, {"y"}]> {cause = "annotation"} : tensor<8x10xf32>
    return %0 : tensor<8x10xf32>
  }
}
