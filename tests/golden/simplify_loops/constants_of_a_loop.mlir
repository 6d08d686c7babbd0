// A loop as JAX writes it: its constants are carries that never change. The limit and the weight come from main.
module {
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  func.func public @main(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %arg1: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}) -> tensor<8x4xf32> {
    %0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.constant dense<10> : tensor<i32>
    %2:4 = stablehlo.while(%arg2 = %0, %arg3 = %1, %arg4 = %arg0, %arg5 = %arg1) : tensor<i32>, tensor<i32>, tensor<8x4xf32>, tensor<4x4xf32> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>, <@mesh, []>, <@mesh, [{"x"}, {}]>, <@mesh, [{}, {"y"}]>]>}
    cond {
      %3 = stablehlo.compare LT, %arg2, %arg3 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %3 : tensor<i1>
    }
    do {
      %4 = stablehlo.constant dense<1> : tensor<i32>
      %5 = stablehlo.add %arg2, %4 : tensor<i32>
      %6 = stablehlo.dot_general %arg4, %arg5, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
      stablehlo.return %5, %arg3, %6, %arg5 : tensor<i32>, tensor<i32>, tensor<8x4xf32>, tensor<4x4xf32>
    }
    %7 = stablehlo.dot_general %2#2, %2#3, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    return %7 : tensor<8x4xf32>
  }
}
// ---- after simplify_loops ----
module {
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  func.func public @main(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %arg1: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}) -> tensor<8x4xf32> {
    %0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.constant dense<10> : tensor<i32>
    %2:2 = stablehlo.while(%arg2 = %0, %arg3 = %arg0) : tensor<i32>, tensor<8x4xf32> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>, <@mesh, [{"x"}, {}]>]>}
    cond {
      %3 = stablehlo.compare LT, %arg2, %1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %3 : tensor<i1>
    }
    do {
      %4 = stablehlo.constant dense<1> : tensor<i32>
      %5 = stablehlo.add %arg2, %4 : tensor<i32>
      %6 = stablehlo.dot_general %arg3, %arg1, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
      stablehlo.return %5, %6 : tensor<i32>, tensor<8x4xf32>
    }
    %7 = stablehlo.dot_general %2#1, %arg1, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    return %7 : tensor<8x4xf32>
  }
}
