// On a ring, halves of a block travel in both directions.
// option hardware=tpu_v5e
// option windowed_einsum=time
module @jit_whole attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["d"=16, "x"=16]>
  func.func public @main(%arg0: tensor<512x8192xbf16> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 512, {}: 8192]>}, %arg1: tensor<8192x512xbf16> {shardwise.placement = #shardwise.placement<@mesh, [{}: 8192, {"x"}: 512]>}) -> (tensor<512x8192xbf16> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 512, {}: 8192]>}) {
    %0 = "shardwise.all_gather"(%arg1) <{gather = #sdy<list_of_axis_ref_lists[{}, {"x"}]>, mesh = @mesh, cause = "annotation"}> : (tensor<8192x512xbf16>) -> tensor<8192x8192xbf16>
    %1 = stablehlo.dot_general %arg0, %0, contracting_dims = [1] x [0] : (tensor<512x8192xbf16>, tensor<8192x8192xbf16>) -> tensor<512x8192xbf16>
    return %1 : tensor<512x8192xbf16>
  }
}
// ---- after window_einsums ----
module @jit_whole attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["d"=16, "x"=16]>
  func.func public @main(%arg0: tensor<512x8192xbf16> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 512, {}: 8192]>}, %arg1: tensor<8192x512xbf16> {shardwise.placement = #shardwise.placement<@mesh, [{}: 8192, {"x"}: 512]>}) -> (tensor<512x8192xbf16> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 512, {}: 8192]>}) {
    %0 = "shardwise.axis_index"() <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh}> : () -> tensor<i32>
    %1 = stablehlo.slice %arg1 [0:8192, 0:256] : (tensor<8192x512xbf16>) -> tensor<8192x256xbf16>
    %2 = stablehlo.slice %arg1 [0:8192, 256:512] : (tensor<8192x512xbf16>) -> tensor<8192x256xbf16>
    %3 = stablehlo.constant dense<0.000000e+00> : tensor<512x8192xbf16>
    %4 = stablehlo.constant dense<0> : tensor<i32>
    %5:4 = stablehlo.while(%arg2 = %4, %arg3 = %1, %arg4 = %2, %arg5 = %3) : tensor<i32>, tensor<8192x256xbf16>, tensor<8192x256xbf16>, tensor<512x8192xbf16>
    cond {
      %6 = stablehlo.constant dense<15> : tensor<i32>
      %7 = stablehlo.compare LT, %arg2, %6 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %7 : tensor<i1>
    }
    do {
      %8 = "shardwise.collective_permute"(%arg3) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, shift = -1 : i64, wrap = true, cause = "annotation, windowed"}> : (tensor<8192x256xbf16>) -> tensor<8192x256xbf16>
      %9 = "shardwise.collective_permute"(%arg4) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, shift = 1 : i64, wrap = true, cause = "annotation, windowed"}> : (tensor<8192x256xbf16>) -> tensor<8192x256xbf16>
      %10 = stablehlo.add %0, %arg2 : tensor<i32>
      %11 = stablehlo.constant dense<16> : tensor<i32>
      %12 = stablehlo.remainder %10, %11 : tensor<i32>
      %13 = stablehlo.constant dense<512> : tensor<i32>
      %14 = stablehlo.multiply %12, %13 : tensor<i32>
      %15 = stablehlo.constant dense<16> : tensor<i32>
      %16 = stablehlo.add %0, %15 : tensor<i32>
      %17 = stablehlo.subtract %16, %arg2 : tensor<i32>
      %18 = stablehlo.constant dense<16> : tensor<i32>
      %19 = stablehlo.remainder %17, %18 : tensor<i32>
      %20 = stablehlo.constant dense<512> : tensor<i32>
      %21 = stablehlo.multiply %19, %20 : tensor<i32>
      %22 = stablehlo.constant dense<256> : tensor<i32>
      %23 = stablehlo.add %21, %22 : tensor<i32>
      %24 = stablehlo.dot_general %arg0, %arg3, contracting_dims = [1] x [0] : (tensor<512x8192xbf16>, tensor<8192x256xbf16>) -> tensor<512x256xbf16>
      %25 = stablehlo.constant dense<0> : tensor<i32>
      %26 = stablehlo.dynamic_update_slice %arg5, %24, %25, %14 : (tensor<512x8192xbf16>, tensor<512x256xbf16>, tensor<i32>, tensor<i32>) -> tensor<512x8192xbf16>
      %27 = stablehlo.dot_general %arg0, %arg4, contracting_dims = [1] x [0] : (tensor<512x8192xbf16>, tensor<8192x256xbf16>) -> tensor<512x256xbf16>
      %28 = stablehlo.constant dense<0> : tensor<i32>
      %29 = stablehlo.dynamic_update_slice %26, %27, %28, %23 : (tensor<512x8192xbf16>, tensor<512x256xbf16>, tensor<i32>, tensor<i32>) -> tensor<512x8192xbf16>
      %30 = stablehlo.constant dense<1> : tensor<i32>
      %31 = stablehlo.add %arg2, %30 : tensor<i32>
      stablehlo.return %31, %8, %9, %29 : tensor<i32>, tensor<8192x256xbf16>, tensor<8192x256xbf16>, tensor<512x8192xbf16>
    }
    %32 = stablehlo.constant dense<15> : tensor<i32>
    %33 = stablehlo.add %0, %32 : tensor<i32>
    %34 = stablehlo.constant dense<16> : tensor<i32>
    %35 = stablehlo.remainder %33, %34 : tensor<i32>
    %36 = stablehlo.constant dense<512> : tensor<i32>
    %37 = stablehlo.multiply %35, %36 : tensor<i32>
    %38 = stablehlo.constant dense<16> : tensor<i32>
    %39 = stablehlo.add %0, %38 : tensor<i32>
    %40 = stablehlo.subtract %39, %32 : tensor<i32>
    %41 = stablehlo.constant dense<16> : tensor<i32>
    %42 = stablehlo.remainder %40, %41 : tensor<i32>
    %43 = stablehlo.constant dense<512> : tensor<i32>
    %44 = stablehlo.multiply %42, %43 : tensor<i32>
    %45 = stablehlo.constant dense<256> : tensor<i32>
    %46 = stablehlo.add %44, %45 : tensor<i32>
    %47 = stablehlo.dot_general %arg0, %5#1, contracting_dims = [1] x [0] : (tensor<512x8192xbf16>, tensor<8192x256xbf16>) -> tensor<512x256xbf16>
    %48 = stablehlo.constant dense<0> : tensor<i32>
    %49 = stablehlo.dynamic_update_slice %5#3, %47, %48, %37 : (tensor<512x8192xbf16>, tensor<512x256xbf16>, tensor<i32>, tensor<i32>) -> tensor<512x8192xbf16>
    %50 = stablehlo.dot_general %arg0, %5#2, contracting_dims = [1] x [0] : (tensor<512x8192xbf16>, tensor<8192x256xbf16>) -> tensor<512x256xbf16>
    %51 = stablehlo.constant dense<0> : tensor<i32>
    %52 = stablehlo.dynamic_update_slice %49, %50, %51, %46 : (tensor<512x8192xbf16>, tensor<512x256xbf16>, tensor<i32>, tensor<i32>) -> tensor<512x8192xbf16>
    return %52 : tensor<512x8192xbf16>
  }
}
