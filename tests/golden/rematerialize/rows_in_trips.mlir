// A gathered stack that two scans read: each gathers a row in the trip that reads it, the second one once more.
// option memory_limit=10000
module @jit_f attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<8x4x16xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 8, {"x"}: 4, {}: 16]>}, %arg1: tensor<2x16xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 2, {}: 16]>}) -> (tensor<2x16xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 2, {}: 16]>}) {
    %0 = "shardwise.all_gather"(%arg0) <{gather = #sdy<list_of_axis_ref_lists[{}, {"x"}, {}]>, mesh = @mesh, cause = "constraint"}> : (tensor<8x4x16xf32>) -> tensor<8x16x16xf32>
    %1 = "shardwise.scan"(%0, %arg1) <{dimension = 0 : i64, offsets = array<i64: 0>, operandSegmentSizes = array<i32: 1, 0, 1>, resultSegmentSizes = array<i32: 0, 1>, scan_dim_size = 8 : i64}> ({
    ^bb0(%arg2: tensor<16x16xf32>, %arg3: tensor<2x16xf32>):
      %2 = stablehlo.dot_general %arg3, %arg2, contracting_dims = [1] x [0] : (tensor<2x16xf32>, tensor<16x16xf32>) -> tensor<2x16xf32>
      stablehlo.return %2 : tensor<2x16xf32>
    }) : (tensor<8x16x16xf32>, tensor<2x16xf32>) -> tensor<2x16xf32>
    %3 = "shardwise.scan"(%0, %1) <{dimension = 0 : i64, is_reverse = true, offsets = array<i64: 0>, operandSegmentSizes = array<i32: 1, 0, 1>, resultSegmentSizes = array<i32: 0, 1>, scan_dim_size = 8 : i64}> ({
    ^bb0(%arg4: tensor<16x16xf32>, %arg5: tensor<2x16xf32>):
      %4 = stablehlo.dot_general %arg5, %arg4, contracting_dims = [1] x [1] : (tensor<2x16xf32>, tensor<16x16xf32>) -> tensor<2x16xf32>
      stablehlo.return %4 : tensor<2x16xf32>
    }) : (tensor<8x16x16xf32>, tensor<2x16xf32>) -> tensor<2x16xf32>
    return %3 : tensor<2x16xf32>
  }
}
// ---- after rematerialize ----
module @jit_f attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<8x4x16xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 8, {"x"}: 4, {}: 16]>}, %arg1: tensor<2x16xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 2, {}: 16]>}) -> (tensor<2x16xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 2, {}: 16]>}) {
    %0 = "shardwise.scan"(%arg0, %arg1) <{dimension = 0 : i64, offsets = array<i64: 0>, operandSegmentSizes = array<i32: 1, 0, 1>, resultSegmentSizes = array<i32: 0, 1>, scan_dim_size = 8 : i64}> ({
    ^bb0(%arg2: tensor<4x16xf32>, %arg3: tensor<2x16xf32>):
      %1 = stablehlo.reshape %arg2 : (tensor<4x16xf32>) -> tensor<1x4x16xf32>
      %2 = "shardwise.all_gather"(%1) <{gather = #sdy<list_of_axis_ref_lists[{}, {"x"}, {}]>, mesh = @mesh, cause = "constraint"}> : (tensor<1x4x16xf32>) -> tensor<1x16x16xf32>
      %3 = stablehlo.reshape %2 : (tensor<1x16x16xf32>) -> tensor<16x16xf32>
      %4 = stablehlo.dot_general %arg3, %3, contracting_dims = [1] x [0] : (tensor<2x16xf32>, tensor<16x16xf32>) -> tensor<2x16xf32>
      stablehlo.return %4 : tensor<2x16xf32>
    }) : (tensor<8x4x16xf32>, tensor<2x16xf32>) -> tensor<2x16xf32>
    %5 = "shardwise.scan"(%arg0, %0) <{dimension = 0 : i64, is_reverse = true, offsets = array<i64: 0>, operandSegmentSizes = array<i32: 1, 0, 1>, resultSegmentSizes = array<i32: 0, 1>, scan_dim_size = 8 : i64}> ({
    ^bb0(%arg4: tensor<4x16xf32>, %arg5: tensor<2x16xf32>):
      %6 = stablehlo.reshape %arg4 : (tensor<4x16xf32>) -> tensor<1x4x16xf32>
      %7 = "shardwise.all_gather"(%6) <{gather = #sdy<list_of_axis_ref_lists[{}, {"x"}, {}]>, mesh = @mesh, cause = "constraint"}> {shardwise.again = 1 : i64} : (tensor<1x4x16xf32>) -> tensor<1x16x16xf32>
      %8 = stablehlo.reshape %7 : (tensor<1x16x16xf32>) -> tensor<16x16xf32>
      %9 = stablehlo.dot_general %arg5, %8, contracting_dims = [1] x [1] : (tensor<2x16xf32>, tensor<16x16xf32>) -> tensor<2x16xf32>
      stablehlo.return %9 : tensor<2x16xf32>
    }) : (tensor<8x4x16xf32>, tensor<2x16xf32>) -> tensor<2x16xf32>
    return %5 : tensor<2x16xf32>
  }
}
