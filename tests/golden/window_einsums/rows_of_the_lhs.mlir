// The rows of the lhs are gathered for two products, which run in one loop.
// option windowed_einsum=always
module @"jit_<lambda>" attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<16x16xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 16, {}: 16]>}, %arg1: tensor<16x6xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 16, {"x"}: 6]>}, %arg2: tensor<16x2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 16, {"x"}: 2]>}) -> (tensor<64x6xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 64, {"x"}: 6]>}, tensor<64x2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 64, {"x"}: 2]>}) {
    %0 = "shardwise.all_gather"(%arg0) <{gather = #sdy<list_of_axis_ref_lists[{"x"}, {}]>, mesh = @mesh, cause = "annotation"}> : (tensor<16x16xf32>) -> tensor<64x16xf32>
    %1 = stablehlo.dot_general %0, %arg1, contracting_dims = [1] x [0] : (tensor<64x16xf32>, tensor<16x6xf32>) -> tensor<64x6xf32>
    %2 = stablehlo.dot_general %0, %arg2, contracting_dims = [1] x [0] : (tensor<64x16xf32>, tensor<16x2xf32>) -> tensor<64x2xf32>
    return %1, %2 : tensor<64x6xf32>, tensor<64x2xf32>
  }
}
// ---- after window_einsums ----
module @"jit_<lambda>" attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<16x16xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 16, {}: 16]>}, %arg1: tensor<16x6xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 16, {"x"}: 6]>}, %arg2: tensor<16x2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 16, {"x"}: 2]>}) -> (tensor<64x6xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 64, {"x"}: 6]>}, tensor<64x2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 64, {"x"}: 2]>}) {
    %0 = "shardwise.axis_index"() <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh}> : () -> tensor<i32>
    %1 = stablehlo.constant dense<0.000000e+00> : tensor<64x6xf32>
    %2 = stablehlo.constant dense<0.000000e+00> : tensor<64x2xf32>
    %3 = stablehlo.constant dense<0> : tensor<i32>
    %4:4 = stablehlo.while(%arg3 = %3, %arg4 = %arg0, %arg5 = %1, %arg6 = %2) : tensor<i32>, tensor<16x16xf32>, tensor<64x6xf32>, tensor<64x2xf32>
    cond {
      %5 = stablehlo.constant dense<3> : tensor<i32>
      %6 = stablehlo.compare LT, %arg3, %5 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %6 : tensor<i1>
    }
    do {
      %7 = "shardwise.collective_permute"(%arg4) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, shift = -1 : i64, wrap = true, cause = "annotation, windowed"}> : (tensor<16x16xf32>) -> tensor<16x16xf32>
      %8 = stablehlo.add %0, %arg3 : tensor<i32>
      %9 = stablehlo.constant dense<4> : tensor<i32>
      %10 = stablehlo.remainder %8, %9 : tensor<i32>
      %11 = stablehlo.constant dense<16> : tensor<i32>
      %12 = stablehlo.multiply %10, %11 : tensor<i32>
      %13 = stablehlo.dot_general %arg4, %arg1, contracting_dims = [1] x [0] : (tensor<16x16xf32>, tensor<16x6xf32>) -> tensor<16x6xf32>
      %14 = stablehlo.constant dense<0> : tensor<i32>
      %15 = stablehlo.dynamic_update_slice %arg5, %13, %12, %14 : (tensor<64x6xf32>, tensor<16x6xf32>, tensor<i32>, tensor<i32>) -> tensor<64x6xf32>
      %16 = stablehlo.dot_general %arg4, %arg2, contracting_dims = [1] x [0] : (tensor<16x16xf32>, tensor<16x2xf32>) -> tensor<16x2xf32>
      %17 = stablehlo.constant dense<0> : tensor<i32>
      %18 = stablehlo.dynamic_update_slice %arg6, %16, %12, %17 : (tensor<64x2xf32>, tensor<16x2xf32>, tensor<i32>, tensor<i32>) -> tensor<64x2xf32>
      %19 = stablehlo.constant dense<1> : tensor<i32>
      %20 = stablehlo.add %arg3, %19 : tensor<i32>
      stablehlo.return %20, %7, %15, %18 : tensor<i32>, tensor<16x16xf32>, tensor<64x6xf32>, tensor<64x2xf32>
    }
    %21 = stablehlo.constant dense<3> : tensor<i32>
    %22 = stablehlo.add %0, %21 : tensor<i32>
    %23 = stablehlo.constant dense<4> : tensor<i32>
    %24 = stablehlo.remainder %22, %23 : tensor<i32>
    %25 = stablehlo.constant dense<16> : tensor<i32>
    %26 = stablehlo.multiply %24, %25 : tensor<i32>
    %27 = stablehlo.dot_general %4#1, %arg1, contracting_dims = [1] x [0] : (tensor<16x16xf32>, tensor<16x6xf32>) -> tensor<16x6xf32>
    %28 = stablehlo.constant dense<0> : tensor<i32>
    %29 = stablehlo.dynamic_update_slice %4#2, %27, %26, %28 : (tensor<64x6xf32>, tensor<16x6xf32>, tensor<i32>, tensor<i32>) -> tensor<64x6xf32>
    %30 = stablehlo.dot_general %4#1, %arg2, contracting_dims = [1] x [0] : (tensor<16x16xf32>, tensor<16x2xf32>) -> tensor<16x2xf32>
    %31 = stablehlo.constant dense<0> : tensor<i32>
    %32 = stablehlo.dynamic_update_slice %4#3, %30, %26, %31 : (tensor<64x2xf32>, tensor<16x2xf32>, tensor<i32>, tensor<i32>) -> tensor<64x2xf32>
    return %29, %32 : tensor<64x6xf32>, tensor<64x2xf32>
  }
}
