// A constant with equal elements shrinks; one with different elements is whole and sliced.
module @jit_constants attributes {shardwise.stage = "resharded"} {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main(%arg0: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> (tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) {
    %0 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} dense<[[0.000000e+00], [1.000000e+00], [4.000000e+00], [9.000000e+00], [1.600000e+01], [2.500000e+01], [3.600000e+01], [4.900000e+01]]> : tensor<8x1xf32>
    %1 = sdy.all_slice [{"x"}, {}] %0 out_sharding=<@mesh, [{"x"}, {}]> {cause = "operand 0 of broadcast_in_dim"} : tensor<8x1xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>} : (tensor<8x1xf32>) -> tensor<8x6xf32>
    %3 = stablehlo.multiply %arg0, %2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>} : tensor<8x6xf32>
    %4 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>} dense<5.000000e-01> : tensor<8x6xf32>
    %5 = stablehlo.add %3, %4 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>} : tensor<8x6xf32>
    return %5 : tensor<8x6xf32>
  }
}
// ---- after localize ----
module @jit_constants attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main(%arg0: tensor<4x2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 4, {"y"}: 2]> : tensor<8x6xf32>}) -> (tensor<4x2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 4, {"y"}: 2]> : tensor<8x6xf32>}) {
    %0 = stablehlo.constant dense<[[0.000000e+00], [1.000000e+00], [4.000000e+00], [9.000000e+00], [1.600000e+01], [2.500000e+01], [3.600000e+01], [4.900000e+01]]> : tensor<8x1xf32>
    %1 = "shardwise.axis_index"() <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh}> : () -> tensor<i32>
    %2 = stablehlo.constant dense<4> : tensor<i32>
    %3 = stablehlo.multiply %1, %2 : tensor<i32>
    %4 = stablehlo.constant dense<0> : tensor<i32>
    %5 = stablehlo.dynamic_slice %0, %3, %4, sizes = [4, 1] : (tensor<8x1xf32>, tensor<i32>, tensor<i32>) -> tensor<4x1xf32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x2xf32>
    %7 = stablehlo.multiply %arg0, %6 : tensor<4x2xf32>
    %8 = stablehlo.constant dense<5.000000e-01> : tensor<4x2xf32>
    %9 = stablehlo.add %7, %8 : tensor<4x2xf32>
    return %9 : tensor<4x2xf32>
  }
}
