// The select comes before the reshape, so the border has the dim of the rows. It is reshaped before the loop.
module @before attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<5x2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 5, {"x"}: 2]>}, %arg1: tensor<2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 2]>}, %arg2: tensor<1x2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 1, {"x"}: 2]>}) -> (tensor<2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 2]>}) {
    %0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.constant dense<1> : tensor<i32>
    %2 = stablehlo.constant dense<5> : tensor<i32>
    %3 = stablehlo.constant dense<-1> : tensor<i32>
    %4 = stablehlo.constant dense<4> : tensor<i32>
    %5 = stablehlo.constant dense<0.000000e+00> : tensor<5x2xf32>
    %6:2 = stablehlo.while(%arg3 = %4, %arg4 = %arg1) : tensor<i32>, tensor<2xf32>
    cond {
      %7 = stablehlo.compare GE, %arg3, %0 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %7 : tensor<i1>
    }
    do {
      %8 = stablehlo.dynamic_slice %arg0, %arg3, %0, sizes = [1, 2] : (tensor<5x2xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>
      %9 = stablehlo.reshape %8 : (tensor<1x2xf32>) -> tensor<2xf32>
      %10 = stablehlo.add %arg3, %3 : tensor<i32>
      %11 = stablehlo.dynamic_slice %arg0, %10, %0, sizes = [1, 2] : (tensor<5x2xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>
      %12 = stablehlo.compare EQ, %arg3, %0 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %13 = stablehlo.select %12, %arg2, %11 : tensor<i1>, tensor<1x2xf32>
      %14 = stablehlo.reshape %13 : (tensor<1x2xf32>) -> tensor<2xf32>
      %15 = stablehlo.multiply %9, %14 : tensor<2xf32>
      %16 = stablehlo.add %15, %arg4 : tensor<2xf32>
      stablehlo.return %10, %16 : tensor<i32>, tensor<2xf32>
    }
    return %6#1 : tensor<2xf32>
  }
}
// ---- after form_scans ----
module @before attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<5x2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 5, {"x"}: 2]>}, %arg1: tensor<2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 2]>}, %arg2: tensor<1x2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 1, {"x"}: 2]>}) -> (tensor<2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 2]>}) {
    %0 = stablehlo.reshape %arg2 : (tensor<1x2xf32>) -> tensor<2xf32>
    %1 = "shardwise.scan"(%arg0, %arg0, %0, %arg1) <{dimension = 0 : i64, is_reverse = true, offsets = array<i64: 0, -1>, operandSegmentSizes = array<i32: 2, 1, 1>, resultSegmentSizes = array<i32: 0, 1>, scan_dim_size = 5 : i64}> ({
    ^bb0(%arg3: tensor<2xf32>, %arg4: tensor<2xf32>, %arg5: tensor<2xf32>):
      %2 = stablehlo.multiply %arg3, %arg4 : tensor<2xf32>
      %3 = stablehlo.add %2, %arg5 : tensor<2xf32>
      stablehlo.return %3 : tensor<2xf32>
    }) : (tensor<5x2xf32>, tensor<5x2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    return %1 : tensor<2xf32>
  }
}
