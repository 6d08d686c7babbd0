// The carry that never changes is sharded in another way than its initial value: it is resharded before the loop.
module {
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  func.func public @main(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %arg1: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<8x4xf32>, tensor<4x4xf32>) {
    %0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %1:2 = stablehlo.while(%arg2 = %arg0, %arg3 = %arg1) : tensor<8x4xf32>, tensor<4x4xf32> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>, <@mesh, [{}, {"y"}]>]>}
    cond {
      %2 = stablehlo.slice %arg2 [0:1, 0:1] : (tensor<8x4xf32>) -> tensor<1x1xf32>
      %3 = stablehlo.reshape %2 : (tensor<1x1xf32>) -> tensor<f32>
      %4 = stablehlo.compare LT, %3, %0 : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %4 : tensor<i1>
    }
    do {
      %5 = stablehlo.dot_general %arg2, %arg3, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
      stablehlo.return %5, %arg3 : tensor<8x4xf32>, tensor<4x4xf32>
    }
    return %1#0, %1#1 : tensor<8x4xf32>, tensor<4x4xf32>
  }
}
// ---- after simplify_loops ----
module {
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  func.func public @main(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %arg1: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<8x4xf32>, tensor<4x4xf32>) {
    %0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %1 = sdy.reshard %arg1 <@mesh, [{}, {"y"}]> : tensor<4x4xf32>
    %2 = stablehlo.while(%arg2 = %arg0) : tensor<8x4xf32> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}
    cond {
      %3 = stablehlo.slice %arg2 [0:1, 0:1] : (tensor<8x4xf32>) -> tensor<1x1xf32>
      %4 = stablehlo.reshape %3 : (tensor<1x1xf32>) -> tensor<f32>
      %5 = stablehlo.compare LT, %4, %0 : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %5 : tensor<i1>
    }
    do {
      %6 = stablehlo.dot_general %arg2, %1, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
      stablehlo.return %6 : tensor<8x4xf32>
    }
    return %2, %1 : tensor<8x4xf32>, tensor<4x4xf32>
  }
}
