// Each device has its rows at their place, and -0 elsewhere. The bits of the addends travel.
module attributes {shardwise.stage = "resharded"} {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  func.func public @main(%arg0: tensor<10x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> (tensor<10x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}) {
    %0 = sdy.sharded_to_unreduced [{"x"}, {}] %arg0 out_sharding=<@mesh, [{}, {"y"}], unreduced={"x"}> : tensor<10x4xf32>
    %1 = sdy.all_reduce {"x"} %0 out_sharding=<@mesh, [{}, {"y"}]> : tensor<10x4xf32>
    return %1 : tensor<10x4xf32>
  }
}
// ---- after localize ----
module attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  func.func public @main(%arg0: tensor<3x2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 3, {"y"}: 2]> : tensor<10x4xf32>}) -> (tensor<10x2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 10, {"y"}: 2]>}) {
    %0 = stablehlo.constant dense<0> : tensor<i64>
    %1 = "shardwise.axis_index"() <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh}> : () -> tensor<i32>
    %2 = stablehlo.constant dense<3> : tensor<i32>
    %3 = stablehlo.multiply %1, %2 : tensor<i32>
    %4 = stablehlo.convert %3 : (tensor<i32>) -> tensor<i64>
    %5 = stablehlo.constant dense<-0.000000e+00> : tensor<12x2xf32>
    %6 = stablehlo.dynamic_update_slice %5, %arg0, %4, %0 : (tensor<12x2xf32>, tensor<3x2xf32>, tensor<i64>, tensor<i64>) -> tensor<12x2xf32>
    %7 = stablehlo.slice %6 [0:10, 0:2] : (tensor<12x2xf32>) -> tensor<10x2xf32>
    %8 = stablehlo.bitcast_convert %7 : (tensor<10x2xf32>) -> tensor<10x2xui32>
    %9 = stablehlo.constant dense<2147483648> : tensor<10x2xui32>
    %10 = stablehlo.xor %8, %9 : tensor<10x2xui32>
    %11 = "shardwise.all_reduce"(%10) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "sum"}> : (tensor<10x2xui32>) -> tensor<10x2xui32>
    %12 = stablehlo.constant dense<2147483648> : tensor<10x2xui32>
    %13 = stablehlo.xor %11, %12 : tensor<10x2xui32>
    %14 = stablehlo.bitcast_convert %13 : (tensor<10x2xui32>) -> tensor<10x2xf32>
    return %14 : tensor<10x2xf32>
  }
}
