// Blocks of 8x2 become 2x8; the exchange is among the 4 devices of a half.
module @jit_sub_axes attributes {shardwise.stage = "resharded"} {
  sdy.mesh @mesh = <["x"=8]>
  func.func public @main(%arg0: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2}, {"x":(2)4}]>}) -> (tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
    %0 = sdy.all_to_all [{"x":(2)4}: 1->0] %arg0 out_sharding=<@mesh, [{"x"}, {}]> {cause = "annotation"} : tensor<16x8xf32>
    return %0 : tensor<16x8xf32>
  }
}
// ---- after localize ----
module @jit_sub_axes attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=8]>
  func.func public @main(%arg0: tensor<8x2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x":(1)2}: 8, {"x":(2)4}: 2]>}) -> (tensor<2x8xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 2, {}: 8]>}) {
    %0 = "shardwise.all_to_all"(%arg0) <{mesh = @mesh, moves = [{axes = #sdy<axis_ref_list{"x":(2)4}>, from_dim = 1 : i64, to_dim = 0 : i64}], cause = "annotation"}> : (tensor<8x2xf32>) -> tensor<2x8xf32>
    return %0 : tensor<2x8xf32>
  }
}
