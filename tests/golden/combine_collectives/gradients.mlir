// The sums of two gradients travel together: both are made before either is used. Each operand keeps its cause.
// option hardware=h100_sxm
module @gradients attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<8x16xf32>, %arg1: tensor<8x32xf32>, %arg2: tensor<16x32xf32>) -> (tensor<16x32xf32>, tensor<32xf32>) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [0] x [0] : (tensor<8x16xf32>, tensor<8x32xf32>) -> tensor<16x32xf32>
    %1 = "shardwise.all_reduce"(%0) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "sum", cause = "reduction in dot_general"}> : (tensor<16x32xf32>) -> tensor<16x32xf32>
    %2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %3 = stablehlo.reduce(%arg1 init: %2) applies stablehlo.add across dimensions = [0] : (tensor<8x32xf32>, tensor<f32>) -> tensor<32xf32>
    %4 = "shardwise.all_reduce"(%3) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "sum", cause = "reduction in reduce"}> : (tensor<32xf32>) -> tensor<32xf32>
    %5 = stablehlo.subtract %arg2, %1 : tensor<16x32xf32>
    return %5, %4 : tensor<16x32xf32>, tensor<32xf32>
  }
}
// ---- after combine_collectives ----
module @gradients attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<8x16xf32>, %arg1: tensor<8x32xf32>, %arg2: tensor<16x32xf32>) -> (tensor<16x32xf32>, tensor<32xf32>) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [0] x [0] : (tensor<8x16xf32>, tensor<8x32xf32>) -> tensor<16x32xf32>
    %1 = "shardwise.all_reduce"(%0) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "sum", cause = "reduction in dot_general"}> : (tensor<16x32xf32>) -> tensor<16x32xf32>
    %2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %3 = stablehlo.reduce(%arg1 init: %2) applies stablehlo.add across dimensions = [0] : (tensor<8x32xf32>, tensor<f32>) -> tensor<32xf32>
    %4 = "shardwise.all_reduce"(%3) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "sum", cause = "reduction in reduce"}> : (tensor<32xf32>) -> tensor<32xf32>
    %5 = stablehlo.subtract %arg2, %1 : tensor<16x32xf32>
    return %5, %4 : tensor<16x32xf32>, tensor<32xf32>
  }
}
