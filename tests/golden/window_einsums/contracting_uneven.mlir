// The contracting dim of 17 rows is gathered: the last block has padding, which the sum must not read.
// option windowed_einsum=always
module @jit_whole attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<16x17xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 16, {}: 17]>}, %arg1: tensor<5x24xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 5, {}: 24]> : tensor<17x24xf32>}) -> (tensor<16x24xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 16, {}: 24]>}) {
    %0 = "shardwise.all_gather"(%arg1) <{gather = #sdy<list_of_axis_ref_lists[{"x"}, {}]>, mesh = @mesh, cause = "annotation"}> : (tensor<5x24xf32>) -> tensor<20x24xf32>
    %1 = stablehlo.slice %0 [0:17, 0:24] : (tensor<20x24xf32>) -> tensor<17x24xf32>
    %2 = stablehlo.dot_general %arg0, %1, contracting_dims = [1] x [0] : (tensor<16x17xf32>, tensor<17x24xf32>) -> tensor<16x24xf32>
    return %2 : tensor<16x24xf32>
  }
}
// ---- after window_einsums ----
module @jit_whole attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<16x17xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 16, {}: 17]>}, %arg1: tensor<5x24xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 5, {}: 24]> : tensor<17x24xf32>}) -> (tensor<16x24xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 16, {}: 24]>}) {
    %0 = "shardwise.axis_index"() <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh}> : () -> tensor<i32>
    %1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %2 = stablehlo.pad %arg0, %1, low = [0, 0], high = [0, 3], interior = [0, 0] : (tensor<16x17xf32>, tensor<f32>) -> tensor<16x20xf32>
    %3 = stablehlo.constant dense<0.000000e+00> : tensor<16x24xf32>
    %4 = stablehlo.constant dense<0> : tensor<i32>
    %5:3 = stablehlo.while(%arg2 = %4, %arg3 = %arg1, %arg4 = %3) : tensor<i32>, tensor<5x24xf32>, tensor<16x24xf32>
    cond {
      %6 = stablehlo.constant dense<3> : tensor<i32>
      %7 = stablehlo.compare LT, %arg2, %6 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %7 : tensor<i1>
    }
    do {
      %8 = "shardwise.collective_permute"(%arg3) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, shift = -1 : i64, wrap = true, cause = "annotation, windowed"}> : (tensor<5x24xf32>) -> tensor<5x24xf32>
      %9 = stablehlo.add %0, %arg2 : tensor<i32>
      %10 = stablehlo.constant dense<4> : tensor<i32>
      %11 = stablehlo.remainder %9, %10 : tensor<i32>
      %12 = stablehlo.constant dense<5> : tensor<i32>
      %13 = stablehlo.multiply %11, %12 : tensor<i32>
      %14 = stablehlo.iota dim = 0 : tensor<5xi32>
      %15 = stablehlo.broadcast_in_dim %13, dims = [] : (tensor<i32>) -> tensor<5xi32>
      %16 = stablehlo.add %14, %15 : tensor<5xi32>
      %17 = stablehlo.constant dense<17> : tensor<5xi32>
      %18 = stablehlo.compare LT, %16, %17 : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
      %19 = stablehlo.broadcast_in_dim %18, dims = [0] : (tensor<5xi1>) -> tensor<5x24xi1>
      %20 = stablehlo.constant dense<0.000000e+00> : tensor<5x24xf32>
      %21 = stablehlo.select %19, %arg3, %20 : tensor<5x24xi1>, tensor<5x24xf32>
      %22 = stablehlo.constant dense<0> : tensor<i32>
      %23 = stablehlo.dynamic_slice %2, %22, %13, sizes = [16, 5] : (tensor<16x20xf32>, tensor<i32>, tensor<i32>) -> tensor<16x5xf32>
      %24 = stablehlo.dot_general %23, %21, contracting_dims = [1] x [0] : (tensor<16x5xf32>, tensor<5x24xf32>) -> tensor<16x24xf32>
      %25 = stablehlo.add %arg4, %24 : tensor<16x24xf32>
      %26 = stablehlo.constant dense<1> : tensor<i32>
      %27 = stablehlo.add %arg2, %26 : tensor<i32>
      stablehlo.return %27, %8, %25 : tensor<i32>, tensor<5x24xf32>, tensor<16x24xf32>
    }
    %28 = stablehlo.constant dense<3> : tensor<i32>
    %29 = stablehlo.add %0, %28 : tensor<i32>
    %30 = stablehlo.constant dense<4> : tensor<i32>
    %31 = stablehlo.remainder %29, %30 : tensor<i32>
    %32 = stablehlo.constant dense<5> : tensor<i32>
    %33 = stablehlo.multiply %31, %32 : tensor<i32>
    %34 = stablehlo.iota dim = 0 : tensor<5xi32>
    %35 = stablehlo.broadcast_in_dim %33, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %36 = stablehlo.add %34, %35 : tensor<5xi32>
    %37 = stablehlo.constant dense<17> : tensor<5xi32>
    %38 = stablehlo.compare LT, %36, %37 : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
    %39 = stablehlo.broadcast_in_dim %38, dims = [0] : (tensor<5xi1>) -> tensor<5x24xi1>
    %40 = stablehlo.constant dense<0.000000e+00> : tensor<5x24xf32>
    %41 = stablehlo.select %39, %5#1, %40 : tensor<5x24xi1>, tensor<5x24xf32>
    %42 = stablehlo.constant dense<0> : tensor<i32>
    %43 = stablehlo.dynamic_slice %2, %42, %33, sizes = [16, 5] : (tensor<16x20xf32>, tensor<i32>, tensor<i32>) -> tensor<16x5xf32>
    %44 = stablehlo.dot_general %43, %41, contracting_dims = [1] x [0] : (tensor<16x5xf32>, tensor<5x24xf32>) -> tensor<16x24xf32>
    %45 = stablehlo.add %5#2, %44 : tensor<16x24xf32>
    return %45 : tensor<16x24xf32>
  }
}
