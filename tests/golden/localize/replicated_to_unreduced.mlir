// The first device along x keeps its copy, the others have -0. The bits of the addends travel.
module attributes {shardwise.stage = "resharded"} {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  func.func public @main(%arg0: tensor<10x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}) -> (tensor<10x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}) {
    %0 = sdy.replicated_to_unreduced {"x"} %arg0 out_sharding=<@mesh, [{}, {"y"}], unreduced={"x"}> : tensor<10x4xf32>
    %1 = sdy.all_reduce {"x"} %0 out_sharding=<@mesh, [{}, {"y"}]> : tensor<10x4xf32>
    return %1 : tensor<10x4xf32>
  }
}
// ---- after localize ----
module attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  func.func public @main(%arg0: tensor<10x2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 10, {"y"}: 2]>}) -> (tensor<10x2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 10, {"y"}: 2]>}) {
    %0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = "shardwise.axis_index"() <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh}> : () -> tensor<i32>
    %2 = stablehlo.compare EQ, %1, %0 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %3 = stablehlo.constant dense<-0.000000e+00> : tensor<10x2xf32>
    %4 = stablehlo.select %2, %arg0, %3 : tensor<i1>, tensor<10x2xf32>
    %5 = stablehlo.bitcast_convert %4 : (tensor<10x2xf32>) -> tensor<10x2xui32>
    %6 = stablehlo.constant dense<2147483648> : tensor<10x2xui32>
    %7 = stablehlo.xor %5, %6 : tensor<10x2xui32>
    %8 = "shardwise.all_reduce"(%7) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "sum"}> : (tensor<10x2xui32>) -> tensor<10x2xui32>
    %9 = stablehlo.constant dense<2147483648> : tensor<10x2xui32>
    %10 = stablehlo.xor %8, %9 : tensor<10x2xui32>
    %11 = stablehlo.bitcast_convert %10 : (tensor<10x2xui32>) -> tensor<10x2xf32>
    return %11 : tensor<10x2xf32>
  }
}
