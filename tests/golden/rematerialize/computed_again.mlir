// The value is alive from the first op to the last one: it is computed again at the end.
// option memory_limit=8363
module @"jit_<lambda>" attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<64x8xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 64, {}: 8]>}, %arg1: tensor<8x8xf32>) -> (tensor<64x8xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 64, {}: 8]>}) {
    %0 = stablehlo.tanh %arg0 : tensor<64x8xf32>
    %1 = stablehlo.dot_general %0, %arg1, contracting_dims = [1] x [0] : (tensor<64x8xf32>, tensor<8x8xf32>) -> tensor<64x8xf32>
    %2 = stablehlo.tanh %1 : tensor<64x8xf32>
    %3 = stablehlo.dot_general %2, %arg1, contracting_dims = [1] x [0] : (tensor<64x8xf32>, tensor<8x8xf32>) -> tensor<64x8xf32>
    %4 = stablehlo.tanh %3 : tensor<64x8xf32>
    %5 = stablehlo.dot_general %4, %arg1, contracting_dims = [1] x [0] : (tensor<64x8xf32>, tensor<8x8xf32>) -> tensor<64x8xf32>
    %6 = stablehlo.tanh %5 : tensor<64x8xf32>
    %7 = stablehlo.multiply %6, %0 : tensor<64x8xf32>
    return %7 : tensor<64x8xf32>
  }
}
// ---- after rematerialize ----
module @"jit_<lambda>" attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<64x8xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 64, {}: 8]>}, %arg1: tensor<8x8xf32>) -> (tensor<64x8xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 64, {}: 8]>}) {
    %0 = stablehlo.tanh %arg0 : tensor<64x8xf32>
    %1 = stablehlo.dot_general %0, %arg1, contracting_dims = [1] x [0] : (tensor<64x8xf32>, tensor<8x8xf32>) -> tensor<64x8xf32>
    %2 = stablehlo.tanh %1 : tensor<64x8xf32>
    %3 = stablehlo.dot_general %2, %arg1, contracting_dims = [1] x [0] : (tensor<64x8xf32>, tensor<8x8xf32>) -> tensor<64x8xf32>
    %4 = stablehlo.tanh %3 : tensor<64x8xf32>
    %5 = stablehlo.dot_general %4, %arg1, contracting_dims = [1] x [0] : (tensor<64x8xf32>, tensor<8x8xf32>) -> tensor<64x8xf32>
    %6 = stablehlo.tanh %5 : tensor<64x8xf32>
    %7 = stablehlo.tanh %arg0 {shardwise.again = 1 : i64} : tensor<64x8xf32>
    %8 = stablehlo.multiply %6, %7 : tensor<64x8xf32>
    return %8 : tensor<64x8xf32>
  }
}
