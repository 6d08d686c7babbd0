// Partial sums of bfloat16 are float32 in the loop.
// option windowed_einsum=always
module @jit_whole attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<16x16xbf16> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 16, {}: 16]>}, %arg1: tensor<4x24xbf16> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 4, {}: 24]>}) -> (tensor<16x24xbf16> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 16, {}: 24]>}) {
    %0 = "shardwise.all_gather"(%arg1) <{gather = #sdy<list_of_axis_ref_lists[{"x"}, {}]>, mesh = @mesh, cause = "annotation"}> : (tensor<4x24xbf16>) -> tensor<16x24xbf16>
    %1 = stablehlo.dot_general %arg0, %0, contracting_dims = [1] x [0] : (tensor<16x16xbf16>, tensor<16x24xbf16>) -> tensor<16x24xbf16>
    return %1 : tensor<16x24xbf16>
  }
}
// ---- after window_einsums ----
module @jit_whole attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<16x16xbf16> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 16, {}: 16]>}, %arg1: tensor<4x24xbf16> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 4, {}: 24]>}) -> (tensor<16x24xbf16> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 16, {}: 24]>}) {
    %0 = "shardwise.axis_index"() <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh}> : () -> tensor<i32>
    %1 = stablehlo.constant dense<0.000000e+00> : tensor<16x24xf32>
    %2 = stablehlo.constant dense<0> : tensor<i32>
    %3:3 = stablehlo.while(%arg2 = %2, %arg3 = %arg1, %arg4 = %1) : tensor<i32>, tensor<4x24xbf16>, tensor<16x24xf32>
    cond {
      %4 = stablehlo.constant dense<3> : tensor<i32>
      %5 = stablehlo.compare LT, %arg2, %4 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %5 : tensor<i1>
    }
    do {
      %6 = "shardwise.collective_permute"(%arg3) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, shift = -1 : i64, wrap = true, cause = "annotation, windowed"}> : (tensor<4x24xbf16>) -> tensor<4x24xbf16>
      %7 = stablehlo.add %0, %arg2 : tensor<i32>
      %8 = stablehlo.constant dense<4> : tensor<i32>
      %9 = stablehlo.remainder %7, %8 : tensor<i32>
      %10 = stablehlo.constant dense<4> : tensor<i32>
      %11 = stablehlo.multiply %9, %10 : tensor<i32>
      %12 = stablehlo.constant dense<0> : tensor<i32>
      %13 = stablehlo.dynamic_slice %arg0, %12, %11, sizes = [16, 4] : (tensor<16x16xbf16>, tensor<i32>, tensor<i32>) -> tensor<16x4xbf16>
      %14 = stablehlo.dot_general %13, %arg3, contracting_dims = [1] x [0] : (tensor<16x4xbf16>, tensor<4x24xbf16>) -> tensor<16x24xf32>
      %15 = stablehlo.add %arg4, %14 : tensor<16x24xf32>
      %16 = stablehlo.constant dense<1> : tensor<i32>
      %17 = stablehlo.add %arg2, %16 : tensor<i32>
      stablehlo.return %17, %6, %15 : tensor<i32>, tensor<4x24xbf16>, tensor<16x24xf32>
    }
    %18 = stablehlo.constant dense<3> : tensor<i32>
    %19 = stablehlo.add %0, %18 : tensor<i32>
    %20 = stablehlo.constant dense<4> : tensor<i32>
    %21 = stablehlo.remainder %19, %20 : tensor<i32>
    %22 = stablehlo.constant dense<4> : tensor<i32>
    %23 = stablehlo.multiply %21, %22 : tensor<i32>
    %24 = stablehlo.constant dense<0> : tensor<i32>
    %25 = stablehlo.dynamic_slice %arg0, %24, %23, sizes = [16, 4] : (tensor<16x16xbf16>, tensor<i32>, tensor<i32>) -> tensor<16x4xbf16>
    %26 = stablehlo.dot_general %25, %3#1, contracting_dims = [1] x [0] : (tensor<16x4xbf16>, tensor<4x24xbf16>) -> tensor<16x24xf32>
    %27 = stablehlo.add %3#2, %26 : tensor<16x24xf32>
    %28 = stablehlo.convert %27 : (tensor<16x24xf32>) -> tensor<16x24xbf16>
    return %28 : tensor<16x24xbf16>
  }
}
