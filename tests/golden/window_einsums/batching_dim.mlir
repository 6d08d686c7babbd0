// A batching dim is gathered: the other operand is read block by block.
// option windowed_einsum=always
module @"jit_<lambda>" attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<2x4x16xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 2, {}: 4, {}: 16]>}, %arg1: tensor<8x16x6xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 8, {}: 16, {"x"}: 6]>}) -> (tensor<8x4x6xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 8, {}: 4, {"x"}: 6]>}) {
    %0 = "shardwise.all_gather"(%arg0) <{gather = #sdy<list_of_axis_ref_lists[{"x"}, {}, {}]>, mesh = @mesh, cause = "annotation"}> : (tensor<2x4x16xf32>) -> tensor<8x4x16xf32>
    %1 = stablehlo.dot_general %0, %arg1, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<8x4x16xf32>, tensor<8x16x6xf32>) -> tensor<8x4x6xf32>
    return %1 : tensor<8x4x6xf32>
  }
}
// ---- after window_einsums ----
module @"jit_<lambda>" attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<2x4x16xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 2, {}: 4, {}: 16]>}, %arg1: tensor<8x16x6xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 8, {}: 16, {"x"}: 6]>}) -> (tensor<8x4x6xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 8, {}: 4, {"x"}: 6]>}) {
    %0 = "shardwise.axis_index"() <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh}> : () -> tensor<i32>
    %1 = stablehlo.constant dense<0.000000e+00> : tensor<8x4x6xf32>
    %2 = stablehlo.constant dense<0> : tensor<i32>
    %3:3 = stablehlo.while(%arg2 = %2, %arg3 = %arg0, %arg4 = %1) : tensor<i32>, tensor<2x4x16xf32>, tensor<8x4x6xf32>
    cond {
      %4 = stablehlo.constant dense<3> : tensor<i32>
      %5 = stablehlo.compare LT, %arg2, %4 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %5 : tensor<i1>
    }
    do {
      %6 = "shardwise.collective_permute"(%arg3) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, shift = -1 : i64, wrap = true, cause = "annotation, windowed"}> : (tensor<2x4x16xf32>) -> tensor<2x4x16xf32>
      %7 = stablehlo.add %0, %arg2 : tensor<i32>
      %8 = stablehlo.constant dense<4> : tensor<i32>
      %9 = stablehlo.remainder %7, %8 : tensor<i32>
      %10 = stablehlo.constant dense<2> : tensor<i32>
      %11 = stablehlo.multiply %9, %10 : tensor<i32>
      %12 = stablehlo.constant dense<0> : tensor<i32>
      %13 = stablehlo.dynamic_slice %arg1, %11, %12, %12, sizes = [2, 16, 6] : (tensor<8x16x6xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x16x6xf32>
      %14 = stablehlo.dot_general %arg3, %13, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x4x16xf32>, tensor<2x16x6xf32>) -> tensor<2x4x6xf32>
      %15 = stablehlo.constant dense<0> : tensor<i32>
      %16 = stablehlo.dynamic_update_slice %arg4, %14, %11, %15, %15 : (tensor<8x4x6xf32>, tensor<2x4x6xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<8x4x6xf32>
      %17 = stablehlo.constant dense<1> : tensor<i32>
      %18 = stablehlo.add %arg2, %17 : tensor<i32>
      stablehlo.return %18, %6, %16 : tensor<i32>, tensor<2x4x16xf32>, tensor<8x4x6xf32>
    }
    %19 = stablehlo.constant dense<3> : tensor<i32>
    %20 = stablehlo.add %0, %19 : tensor<i32>
    %21 = stablehlo.constant dense<4> : tensor<i32>
    %22 = stablehlo.remainder %20, %21 : tensor<i32>
    %23 = stablehlo.constant dense<2> : tensor<i32>
    %24 = stablehlo.multiply %22, %23 : tensor<i32>
    %25 = stablehlo.constant dense<0> : tensor<i32>
    %26 = stablehlo.dynamic_slice %arg1, %24, %25, %25, sizes = [2, 16, 6] : (tensor<8x16x6xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x16x6xf32>
    %27 = stablehlo.dot_general %3#1, %26, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x4x16xf32>, tensor<2x16x6xf32>) -> tensor<2x4x6xf32>
    %28 = stablehlo.constant dense<0> : tensor<i32>
    %29 = stablehlo.dynamic_update_slice %3#2, %27, %24, %28, %28 : (tensor<8x4x6xf32>, tensor<2x4x6xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<8x4x6xf32>
    return %29 : tensor<8x4x6xf32>
  }
}
