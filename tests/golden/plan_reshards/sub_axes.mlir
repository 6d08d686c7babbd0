// The minor 4 of the 8 devices of x move from columns to rows: one all_to_all within each half.
module @jit_sub_axes attributes {shardwise.stage = "assigned"} {
  sdy.mesh @mesh = <["x"=8]>
  func.func public @main(%arg0: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2}, {"x":(2)4}]>}) -> (tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
    %0 = sdy.reshard %arg0 <@mesh, [{"x"}, {}]> {cause = "annotation"} : tensor<16x8xf32>
    return %0 : tensor<16x8xf32>
  }
}
// ---- after plan_reshards ----
module @jit_sub_axes attributes {shardwise.stage = "resharded"} {
  sdy.mesh @mesh = <["x"=8]>
  func.func public @main(%arg0: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2}, {"x":(2)4}]>}) -> (tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
    %0 = sdy.all_to_all [{"x":(2)4}: 1->0] %arg0 out_sharding=<@mesh, [{"x"}, {}]> {cause = "annotation"} : tensor<16x8xf32>
    return %0 : tensor<16x8xf32>
  }
}
