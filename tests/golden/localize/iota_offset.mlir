// Each device counts on from where its block starts: axis_index times the block, added to the iota of the block.
module @iota_offset attributes {shardwise.stage = "resharded"} {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main(%arg0: tensor<17x3xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}) -> (tensor<17x3xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}) {
    %0 = stablehlo.iota dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {}]>]>} : tensor<17x3xi32>
    %1 = stablehlo.add %arg0, %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {}]>]>} : tensor<17x3xi32>
    return %1 : tensor<17x3xi32>
  }
}
// ---- after localize ----
module @iota_offset attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main(%arg0: tensor<5x3xi32> {shardwise.placement = #shardwise.placement<@mesh, [{"y"}: 5, {}: 3]> : tensor<17x3xi32>}) -> (tensor<5x3xi32> {shardwise.placement = #shardwise.placement<@mesh, [{"y"}: 5, {}: 3]> : tensor<17x3xi32>}) {
    %0 = "shardwise.axis_index"() <{axes = #sdy<axis_ref_list{"y"}>, mesh = @mesh}> : () -> tensor<i32>
    %1 = stablehlo.constant dense<5> : tensor<i32>
    %2 = stablehlo.multiply %0, %1 : tensor<i32>
    %3 = stablehlo.iota dim = 0 : tensor<5x3xi32>
    %4 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i32>) -> tensor<5x3xi32>
    %5 = stablehlo.add %3, %4 : tensor<5x3xi32>
    %6 = stablehlo.add %arg0, %5 : tensor<5x3xi32>
    return %6 : tensor<5x3xi32>
  }
}
