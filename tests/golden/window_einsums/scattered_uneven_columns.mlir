// The result is scattered along 23 columns: the rhs is filled up to whole blocks.
// option windowed_einsum=always
module @"jit_<lambda>" attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<16x128xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 16, {"x"}: 128]>}, %arg1: tensor<128x23xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 128, {}: 23]>}) -> (tensor<16x6xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 16, {"x"}: 6]> : tensor<16x23xf32>}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<16x128xf32>, tensor<128x23xf32>) -> tensor<16x23xf32>
    %1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %2 = stablehlo.pad %0, %1, low = [0, 0], high = [0, 1], interior = [0, 0] : (tensor<16x23xf32>, tensor<f32>) -> tensor<16x24xf32>
    %3 = "shardwise.reduce_scatter"(%2) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "sum", scatter = #sdy<list_of_axis_ref_lists[{}, {"x"}]>, cause = "reduction in dot_general"}> : (tensor<16x24xf32>) -> tensor<16x6xf32>
    return %3 : tensor<16x6xf32>
  }
}
// ---- after window_einsums ----
module @"jit_<lambda>" attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<16x128xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 16, {"x"}: 128]>}, %arg1: tensor<128x23xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 128, {}: 23]>}) -> (tensor<16x6xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 16, {"x"}: 6]> : tensor<16x23xf32>}) {
    %0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = "shardwise.axis_index"() <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh}> : () -> tensor<i32>
    %2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %3 = stablehlo.pad %arg1, %2, low = [0, 0], high = [0, 1], interior = [0, 0] : (tensor<128x23xf32>, tensor<f32>) -> tensor<128x24xf32>
    %4 = stablehlo.constant dense<1> : tensor<i32>
    %5 = stablehlo.constant dense<4> : tensor<i32>
    %6 = stablehlo.add %1, %5 : tensor<i32>
    %7 = stablehlo.subtract %6, %4 : tensor<i32>
    %8 = stablehlo.constant dense<4> : tensor<i32>
    %9 = stablehlo.remainder %7, %8 : tensor<i32>
    %10 = stablehlo.constant dense<6> : tensor<i32>
    %11 = stablehlo.multiply %9, %10 : tensor<i32>
    %12 = stablehlo.constant dense<0> : tensor<i32>
    %13 = stablehlo.dynamic_slice %3, %12, %11, sizes = [128, 6] : (tensor<128x24xf32>, tensor<i32>, tensor<i32>) -> tensor<128x6xf32>
    %14 = stablehlo.dot_general %arg0, %13, contracting_dims = [1] x [0] : (tensor<16x128xf32>, tensor<128x6xf32>) -> tensor<16x6xf32>
    %15 = stablehlo.constant dense<0> : tensor<i32>
    %16:2 = stablehlo.while(%arg2 = %15, %arg3 = %14) : tensor<i32>, tensor<16x6xf32>
    cond {
      %17 = stablehlo.constant dense<3> : tensor<i32>
      %18 = stablehlo.compare LT, %arg2, %17 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %18 : tensor<i1>
    }
    do {
      %19 = stablehlo.constant dense<2> : tensor<i32>
      %20 = stablehlo.add %arg2, %19 : tensor<i32>
      %21 = "shardwise.collective_permute"(%arg3) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, shift = 1 : i64, wrap = true, cause = "reduction in dot_general, windowed"}> : (tensor<16x6xf32>) -> tensor<16x6xf32>
      %22 = stablehlo.constant dense<4> : tensor<i32>
      %23 = stablehlo.add %1, %22 : tensor<i32>
      %24 = stablehlo.subtract %23, %20 : tensor<i32>
      %25 = stablehlo.constant dense<4> : tensor<i32>
      %26 = stablehlo.remainder %24, %25 : tensor<i32>
      %27 = stablehlo.constant dense<6> : tensor<i32>
      %28 = stablehlo.multiply %26, %27 : tensor<i32>
      %29 = stablehlo.constant dense<0> : tensor<i32>
      %30 = stablehlo.dynamic_slice %3, %29, %28, sizes = [128, 6] : (tensor<128x24xf32>, tensor<i32>, tensor<i32>) -> tensor<128x6xf32>
      %31 = stablehlo.dot_general %arg0, %30, contracting_dims = [1] x [0] : (tensor<16x128xf32>, tensor<128x6xf32>) -> tensor<16x6xf32>
      %32 = stablehlo.add %21, %31 : tensor<16x6xf32>
      %33 = stablehlo.constant dense<1> : tensor<i32>
      %34 = stablehlo.add %arg2, %33 : tensor<i32>
      stablehlo.return %34, %32 : tensor<i32>, tensor<16x6xf32>
    }
    %35 = stablehlo.reshape %16#1 : (tensor<16x6xf32>) -> tensor<16x6xf32>
    return %35 : tensor<16x6xf32>
  }
}
