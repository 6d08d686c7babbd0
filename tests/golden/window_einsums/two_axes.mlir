// A dim that is split over two axes is one ring of their product.
// option windowed_einsum=always
module @jit_whole attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["a"=2, "b"=2]>
  func.func public @main(%arg0: tensor<16x16xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"a", "b"}: 16, {}: 16]>}, %arg1: tensor<16x6xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 16, {"a", "b"}: 6]>}) -> (tensor<16x24xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"a", "b"}: 16, {}: 24]>}) {
    %0 = "shardwise.all_gather"(%arg1) <{gather = #sdy<list_of_axis_ref_lists[{}, {"a", "b"}]>, mesh = @mesh, cause = "annotation"}> : (tensor<16x6xf32>) -> tensor<16x24xf32>
    %1 = stablehlo.dot_general %arg0, %0, contracting_dims = [1] x [0] : (tensor<16x16xf32>, tensor<16x24xf32>) -> tensor<16x24xf32>
    return %1 : tensor<16x24xf32>
  }
}
// ---- after window_einsums ----
module @jit_whole attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["a"=2, "b"=2]>
  func.func public @main(%arg0: tensor<16x16xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"a", "b"}: 16, {}: 16]>}, %arg1: tensor<16x6xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 16, {"a", "b"}: 6]>}) -> (tensor<16x24xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"a", "b"}: 16, {}: 24]>}) {
    %0 = "shardwise.axis_index"() <{axes = #sdy<axis_ref_list{"a", "b"}>, mesh = @mesh}> : () -> tensor<i32>
    %1 = stablehlo.constant dense<0.000000e+00> : tensor<16x24xf32>
    %2 = stablehlo.constant dense<0> : tensor<i32>
    %3:3 = stablehlo.while(%arg2 = %2, %arg3 = %arg1, %arg4 = %1) : tensor<i32>, tensor<16x6xf32>, tensor<16x24xf32>
    cond {
      %4 = stablehlo.constant dense<3> : tensor<i32>
      %5 = stablehlo.compare LT, %arg2, %4 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %5 : tensor<i1>
    }
    do {
      %6 = "shardwise.collective_permute"(%arg3) <{axes = #sdy<axis_ref_list{"a", "b"}>, mesh = @mesh, shift = -1 : i64, wrap = true, cause = "annotation, windowed"}> : (tensor<16x6xf32>) -> tensor<16x6xf32>
      %7 = stablehlo.add %0, %arg2 : tensor<i32>
      %8 = stablehlo.constant dense<4> : tensor<i32>
      %9 = stablehlo.remainder %7, %8 : tensor<i32>
      %10 = stablehlo.constant dense<6> : tensor<i32>
      %11 = stablehlo.multiply %9, %10 : tensor<i32>
      %12 = stablehlo.dot_general %arg0, %arg3, contracting_dims = [1] x [0] : (tensor<16x16xf32>, tensor<16x6xf32>) -> tensor<16x6xf32>
      %13 = stablehlo.constant dense<0> : tensor<i32>
      %14 = stablehlo.dynamic_update_slice %arg4, %12, %13, %11 : (tensor<16x24xf32>, tensor<16x6xf32>, tensor<i32>, tensor<i32>) -> tensor<16x24xf32>
      %15 = stablehlo.constant dense<1> : tensor<i32>
      %16 = stablehlo.add %arg2, %15 : tensor<i32>
      stablehlo.return %16, %6, %14 : tensor<i32>, tensor<16x6xf32>, tensor<16x24xf32>
    }
    %17 = stablehlo.constant dense<3> : tensor<i32>
    %18 = stablehlo.add %0, %17 : tensor<i32>
    %19 = stablehlo.constant dense<4> : tensor<i32>
    %20 = stablehlo.remainder %18, %19 : tensor<i32>
    %21 = stablehlo.constant dense<6> : tensor<i32>
    %22 = stablehlo.multiply %20, %21 : tensor<i32>
    %23 = stablehlo.dot_general %arg0, %3#1, contracting_dims = [1] x [0] : (tensor<16x16xf32>, tensor<16x6xf32>) -> tensor<16x6xf32>
    %24 = stablehlo.constant dense<0> : tensor<i32>
    %25 = stablehlo.dynamic_update_slice %3#2, %23, %24, %22 : (tensor<16x24xf32>, tensor<16x6xf32>, tensor<i32>, tensor<i32>) -> tensor<16x24xf32>
    return %25 : tensor<16x24xf32>
  }
}
