// A program within its limit stays as it is.
// option memory_limit=49152
module @"jit_<lambda>" attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<16x64xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 16, {}: 64]>}, %arg1: tensor<64x64xf32>) -> (tensor<16x64xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 16, {}: 64]>}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<16x64xf32>, tensor<64x64xf32>) -> tensor<16x64xf32>
    %1 = stablehlo.tanh %0 : tensor<16x64xf32>
    return %1 : tensor<16x64xf32>
  }
}
// ---- after rematerialize ----
module @"jit_<lambda>" attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<16x64xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 16, {}: 64]>}, %arg1: tensor<64x64xf32>) -> (tensor<16x64xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 16, {}: 64]>}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<16x64xf32>, tensor<64x64xf32>) -> tensor<16x64xf32>
    %1 = stablehlo.tanh %0 : tensor<16x64xf32>
    return %1 : tensor<16x64xf32>
  }
}
