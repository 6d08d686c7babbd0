// A permute: the device at position i along (y, x) receives from the one at position i along (x, y).
module @jit_permute attributes {shardwise.stage = "resharded"} {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main(%arg0: tensor<16x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>}) -> (tensor<16x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "x"}, {}]>}) {
    %0 = sdy.collective_permute %arg0 out_sharding=<@mesh, [{"y", "x"}, {}]> {cause = "annotation"} : tensor<16x3xf32>
    return %0 : tensor<16x3xf32>
  }
}
// ---- after localize ----
module @jit_permute attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main(%arg0: tensor<2x3xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x", "y"}: 2, {}: 3]>}) -> (tensor<2x3xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"y", "x"}: 2, {}: 3]>}) {
    %0 = "shardwise.collective_permute"(%arg0) <{from = #sdy<axis_ref_list{"x", "y"}>, mesh = @mesh, to = #sdy<axis_ref_list{"y", "x"}>, cause = "annotation"}> : (tensor<2x3xf32>) -> tensor<2x3xf32>
    return %0 : tensor<2x3xf32>
  }
}
