// All users took %arg0 as it was, so the gather that an annotation asked for goes.
module @jit_unused_gather attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["d"=8]>
  func.func public @main(%arg0: tensor<1x1024xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"d"}: 1, {}: 1024]>}) -> (tensor<1x1024xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"d"}: 1, {}: 1024]>}) {
    %0 = "shardwise.all_gather"(%arg0) <{gather = #sdy<list_of_axis_ref_lists[{"d"}, {}]>, mesh = @mesh, cause = "annotation"}> : (tensor<1x1024xf32>) -> tensor<8x1024xf32>
    %1 = stablehlo.constant dense<2.000000e+00> : tensor<1x1024xf32>
    %2 = stablehlo.multiply %arg0, %1 : tensor<1x1024xf32>
    return %2 : tensor<1x1024xf32>
  }
}
// ---- after optimize_collectives ----
module @jit_unused_gather attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["d"=8]>
  func.func public @main(%arg0: tensor<1x1024xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"d"}: 1, {}: 1024]>}) -> (tensor<1x1024xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"d"}: 1, {}: 1024]>}) {
    %0 = stablehlo.constant dense<2.000000e+00> : tensor<1x1024xf32>
    %1 = stablehlo.multiply %arg0, %0 : tensor<1x1024xf32>
    return %1 : tensor<1x1024xf32>
  }
}
