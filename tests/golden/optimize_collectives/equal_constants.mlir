// Both branches, and what follows them, have one constant. A number and an array of equal elements stay.
module @jit_equal_constants attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["d"=2]>
  func.func public @main(%arg0: tensor<i1>, %arg1: tensor<2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"d"}: 2]>}) -> (tensor<2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"d"}: 2]>}) {
    %0 = "stablehlo.if"(%arg0) ({
      %1 = stablehlo.constant dense<[5.000000e-01, 2.500000e-01]> : tensor<2xf32>
      %2 = stablehlo.multiply %arg1, %1 : tensor<2xf32>
      stablehlo.return %2 : tensor<2xf32>
    }, {
      %3 = stablehlo.constant dense<[5.000000e-01, 2.500000e-01]> : tensor<2xf32>
      %4 = stablehlo.constant dense<3.000000e+00> : tensor<2xf32>
      %5 = stablehlo.add %3, %4 : tensor<2xf32>
      stablehlo.return %5 : tensor<2xf32>
    }) : (tensor<i1>) -> tensor<2xf32>
    %6 = stablehlo.constant dense<[5.000000e-01, 2.500000e-01]> : tensor<2xf32>
    %7 = stablehlo.add %0, %6 : tensor<2xf32>
    return %7 : tensor<2xf32>
  }
}
// ---- after optimize_collectives ----
module @jit_equal_constants attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["d"=2]>
  func.func public @main(%arg0: tensor<i1>, %arg1: tensor<2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"d"}: 2]>}) -> (tensor<2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"d"}: 2]>}) {
    %0 = stablehlo.constant dense<[5.000000e-01, 2.500000e-01]> : tensor<2xf32>
    %1 = "stablehlo.if"(%arg0) ({
      %2 = stablehlo.multiply %arg1, %0 : tensor<2xf32>
      stablehlo.return %2 : tensor<2xf32>
    }, {
      %3 = stablehlo.constant dense<3.000000e+00> : tensor<2xf32>
      %4 = stablehlo.add %0, %3 : tensor<2xf32>
      stablehlo.return %4 : tensor<2xf32>
    }) : (tensor<i1>) -> tensor<2xf32>
    %5 = stablehlo.add %1, %0 : tensor<2xf32>
    return %5 : tensor<2xf32>
  }
}
