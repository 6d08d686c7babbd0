// The tanh of each trip is computed again in the gradient, from the carry and the weight that both scans read.
// option memory_limit=8110
module @jit_loss attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<4x8x8xf32>, %arg1: tensor<16x8xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 16, {}: 8]>}) -> tensor<4x8x8xf32> {
    %0 = stablehlo.constant dense<1.000000e+00> : tensor<16x8xf32>
    %1:3 = "shardwise.scan"(%arg0, %arg1) <{dimension = 0 : i64, offsets = array<i64: 0>, operandSegmentSizes = array<i32: 1, 0, 1>, resultSegmentSizes = array<i32: 2, 1>, scan_dim_size = 4 : i64}> ({
    ^bb0(%arg2: tensor<8x8xf32>, %arg3: tensor<16x8xf32>):
      %2 = stablehlo.dot_general %arg3, %arg2, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
      %3 = stablehlo.tanh %2 : tensor<16x8xf32>
      %4 = stablehlo.add %arg3, %3 : tensor<16x8xf32>
      %5 = stablehlo.add %3, %0 : tensor<16x8xf32>
      %6 = stablehlo.subtract %0, %3 : tensor<16x8xf32>
      %7 = stablehlo.multiply %6, %5 : tensor<16x8xf32>
      stablehlo.return %arg3, %7, %4 : tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>
    }) : (tensor<4x8x8xf32>, tensor<16x8xf32>) -> (tensor<4x16x8xf32>, tensor<4x16x8xf32>, tensor<16x8xf32>)
    %8 = stablehlo.add %1#2, %1#2 : tensor<16x8xf32>
    %9:2 = "shardwise.scan"(%1#0, %1#1, %arg0, %8) <{dimension = 0 : i64, is_reverse = true, offsets = array<i64: 0, 0, 0>, operandSegmentSizes = array<i32: 3, 0, 1>, resultSegmentSizes = array<i32: 1, 1>, scan_dim_size = 4 : i64}> ({
    ^bb0(%arg4: tensor<16x8xf32>, %arg5: tensor<16x8xf32>, %arg6: tensor<8x8xf32>, %arg7: tensor<16x8xf32>):
      %10 = stablehlo.multiply %arg7, %arg5 : tensor<16x8xf32>
      %11 = stablehlo.dot_general %10, %arg6, contracting_dims = [1] x [1] : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
      %12 = stablehlo.add %arg7, %11 : tensor<16x8xf32>
      %13 = stablehlo.dot_general %arg4, %10, contracting_dims = [0] x [0] : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
      stablehlo.return %13, %12 : tensor<8x8xf32>, tensor<16x8xf32>
    }) : (tensor<4x16x8xf32>, tensor<4x16x8xf32>, tensor<4x8x8xf32>, tensor<16x8xf32>) -> (tensor<4x8x8xf32>, tensor<16x8xf32>)
    %14 = "shardwise.all_reduce"(%9#0) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "sum", cause = "reduction in dot_general, after the loop"}> : (tensor<4x8x8xf32>) -> tensor<4x8x8xf32>
    return %14 : tensor<4x8x8xf32>
  }
}
// ---- after rematerialize ----
module @jit_loss attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<4x8x8xf32>, %arg1: tensor<16x8xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 16, {}: 8]>}) -> tensor<4x8x8xf32> {
    %0 = stablehlo.constant dense<1.000000e+00> : tensor<16x8xf32>
    %1:2 = "shardwise.scan"(%arg0, %arg1) <{dimension = 0 : i64, offsets = array<i64: 0>, operandSegmentSizes = array<i32: 1, 0, 1>, resultSegmentSizes = array<i32: 1, 1>, scan_dim_size = 4 : i64}> ({
    ^bb0(%arg2: tensor<8x8xf32>, %arg3: tensor<16x8xf32>):
      %2 = stablehlo.dot_general %arg3, %arg2, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
      %3 = stablehlo.tanh %2 : tensor<16x8xf32>
      %4 = stablehlo.add %arg3, %3 : tensor<16x8xf32>
      stablehlo.return %arg3, %4 : tensor<16x8xf32>, tensor<16x8xf32>
    }) : (tensor<4x8x8xf32>, tensor<16x8xf32>) -> (tensor<4x16x8xf32>, tensor<16x8xf32>)
    %5 = stablehlo.add %1#1, %1#1 : tensor<16x8xf32>
    %6:2 = "shardwise.scan"(%1#0, %arg0, %5) <{dimension = 0 : i64, is_reverse = true, offsets = array<i64: 0, 0>, operandSegmentSizes = array<i32: 2, 0, 1>, resultSegmentSizes = array<i32: 1, 1>, scan_dim_size = 4 : i64}> ({
    ^bb0(%arg4: tensor<16x8xf32>, %arg5: tensor<8x8xf32>, %arg6: tensor<16x8xf32>):
      %7 = stablehlo.dot_general %arg4, %arg5, contracting_dims = [1] x [0] {shardwise.again = 1 : i64} : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
      %8 = stablehlo.tanh %7 {shardwise.again = 1 : i64} : tensor<16x8xf32>
      %9 = stablehlo.add %8, %0 : tensor<16x8xf32>
      %10 = stablehlo.subtract %0, %8 : tensor<16x8xf32>
      %11 = stablehlo.multiply %10, %9 : tensor<16x8xf32>
      %12 = stablehlo.multiply %arg6, %11 : tensor<16x8xf32>
      %13 = stablehlo.dot_general %12, %arg5, contracting_dims = [1] x [1] : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
      %14 = stablehlo.add %arg6, %13 : tensor<16x8xf32>
      %15 = stablehlo.dot_general %arg4, %12, contracting_dims = [0] x [0] : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
      stablehlo.return %15, %14 : tensor<8x8xf32>, tensor<16x8xf32>
    }) : (tensor<4x16x8xf32>, tensor<4x8x8xf32>, tensor<16x8xf32>) -> (tensor<4x8x8xf32>, tensor<16x8xf32>)
    %16 = "shardwise.all_reduce"(%6#0) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "sum", cause = "reduction in dot_general, after the loop"}> : (tensor<4x8x8xf32>) -> tensor<4x8x8xf32>
    return %16 : tensor<4x8x8xf32>
  }
}
