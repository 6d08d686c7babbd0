// The result is scattered along its rows: sums travel, and each ends at its owner.
// option windowed_einsum=always
module @"jit_<lambda>" attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<16x128xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 16, {"x"}: 128]>}, %arg1: tensor<128x24xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 128, {}: 24]>}) -> (tensor<4x24xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 4, {}: 24]>}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<16x128xf32>, tensor<128x24xf32>) -> tensor<16x24xf32>
    %1 = "shardwise.reduce_scatter"(%0) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "sum", scatter = #sdy<list_of_axis_ref_lists[{"x"}, {}]>, cause = "reduction in dot_general"}> : (tensor<16x24xf32>) -> tensor<4x24xf32>
    return %1 : tensor<4x24xf32>
  }
}
// ---- after window_einsums ----
module @"jit_<lambda>" attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<16x128xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 16, {"x"}: 128]>}, %arg1: tensor<128x24xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 128, {}: 24]>}) -> (tensor<4x24xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 4, {}: 24]>}) {
    %0 = "shardwise.axis_index"() <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh}> : () -> tensor<i32>
    %1 = stablehlo.constant dense<1> : tensor<i32>
    %2 = stablehlo.constant dense<4> : tensor<i32>
    %3 = stablehlo.add %0, %2 : tensor<i32>
    %4 = stablehlo.subtract %3, %1 : tensor<i32>
    %5 = stablehlo.constant dense<4> : tensor<i32>
    %6 = stablehlo.remainder %4, %5 : tensor<i32>
    %7 = stablehlo.constant dense<4> : tensor<i32>
    %8 = stablehlo.multiply %6, %7 : tensor<i32>
    %9 = stablehlo.constant dense<0> : tensor<i32>
    %10 = stablehlo.dynamic_slice %arg0, %8, %9, sizes = [4, 128] : (tensor<16x128xf32>, tensor<i32>, tensor<i32>) -> tensor<4x128xf32>
    %11 = stablehlo.dot_general %10, %arg1, contracting_dims = [1] x [0] : (tensor<4x128xf32>, tensor<128x24xf32>) -> tensor<4x24xf32>
    %12 = stablehlo.constant dense<0> : tensor<i32>
    %13:2 = stablehlo.while(%arg2 = %12, %arg3 = %11) : tensor<i32>, tensor<4x24xf32>
    cond {
      %14 = stablehlo.constant dense<3> : tensor<i32>
      %15 = stablehlo.compare LT, %arg2, %14 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %15 : tensor<i1>
    }
    do {
      %16 = stablehlo.constant dense<2> : tensor<i32>
      %17 = stablehlo.add %arg2, %16 : tensor<i32>
      %18 = "shardwise.collective_permute"(%arg3) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, shift = 1 : i64, wrap = true, cause = "reduction in dot_general, windowed"}> : (tensor<4x24xf32>) -> tensor<4x24xf32>
      %19 = stablehlo.constant dense<4> : tensor<i32>
      %20 = stablehlo.add %0, %19 : tensor<i32>
      %21 = stablehlo.subtract %20, %17 : tensor<i32>
      %22 = stablehlo.constant dense<4> : tensor<i32>
      %23 = stablehlo.remainder %21, %22 : tensor<i32>
      %24 = stablehlo.constant dense<4> : tensor<i32>
      %25 = stablehlo.multiply %23, %24 : tensor<i32>
      %26 = stablehlo.constant dense<0> : tensor<i32>
      %27 = stablehlo.dynamic_slice %arg0, %25, %26, sizes = [4, 128] : (tensor<16x128xf32>, tensor<i32>, tensor<i32>) -> tensor<4x128xf32>
      %28 = stablehlo.dot_general %27, %arg1, contracting_dims = [1] x [0] : (tensor<4x128xf32>, tensor<128x24xf32>) -> tensor<4x24xf32>
      %29 = stablehlo.add %18, %28 : tensor<4x24xf32>
      %30 = stablehlo.constant dense<1> : tensor<i32>
      %31 = stablehlo.add %arg2, %30 : tensor<i32>
      stablehlo.return %31, %29 : tensor<i32>, tensor<4x24xf32>
    }
    %32 = stablehlo.reshape %13#1 : (tensor<4x24xf32>) -> tensor<4x24xf32>
    return %32 : tensor<4x24xf32>
  }
}
