// Constants have no sharding of their own: they take that of their use.
module @jit_constants {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main(%arg0: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> tensor<8x6xf32> {
    %0 = stablehlo.constant dense<[[0.000000e+00], [1.000000e+00], [4.000000e+00], [9.000000e+00], [1.600000e+01], [2.500000e+01], [3.600000e+01], [4.900000e+01]]> : tensor<8x1xf32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<8x1xf32>) -> tensor<8x6xf32>
    %2 = stablehlo.multiply %arg0, %1 : tensor<8x6xf32>
    %3 = stablehlo.constant dense<5.000000e-01> : tensor<8x6xf32>
    %4 = stablehlo.add %2, %3 : tensor<8x6xf32>
    return %4 : tensor<8x6xf32>
  }
}
// ---- after propagate ----
module @jit_constants {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main(%arg0: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> (tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) {
    %0 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} dense<[[0.000000e+00], [1.000000e+00], [4.000000e+00], [9.000000e+00], [1.600000e+01], [2.500000e+01], [3.600000e+01], [4.900000e+01]]> : tensor<8x1xf32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [0, 1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>} : (tensor<8x1xf32>) -> tensor<8x6xf32>
    %2 = stablehlo.multiply %arg0, %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>} : tensor<8x6xf32>
    %3 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>} dense<5.000000e-01> : tensor<8x6xf32>
    %4 = stablehlo.add %2, %3 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>} : tensor<8x6xf32>
    return %4 : tensor<8x6xf32>
  }
}
