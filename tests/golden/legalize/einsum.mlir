// An einsum is a transposed product; a letter of one operand alone is summed before.
module @einsum {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<2x8x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}, {}]>}, %arg1: tensor<8x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<5x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
    %0 = stablehlo.einsum %arg0, %arg1, config = "ijk,jl->li" {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} : (tensor<2x8x3xf32>, tensor<8x5xf32>) -> tensor<5x2xf32>
    return %0 : tensor<5x2xf32>
  }
}
// ---- after legalize ----
module @einsum {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<2x8x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}, {}]>}, %arg1: tensor<8x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<5x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
    %0 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%arg0 init: %0) applies stablehlo.add across dimensions = [2] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : (tensor<2x8x3xf32>, tensor<f32>) -> tensor<2x8xf32>
    %2 = stablehlo.dot_general %1, %arg1, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} : (tensor<2x8xf32>, tensor<8x5xf32>) -> tensor<2x5xf32>
    %3 = stablehlo.transpose %2, dims = [1, 0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} : (tensor<2x5xf32>) -> tensor<5x2xf32>
    return %3 : tensor<5x2xf32>
  }
}
