// Backwards, with the row before each one: the first of them is %arg1, a border.
module @before attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<5x2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 5, {"x"}: 2]>}, %arg1: tensor<2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 2]>}) -> (tensor<2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 2]>}) {
    %0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.constant dense<1> : tensor<i32>
    %2 = stablehlo.constant dense<5> : tensor<i32>
    %3 = stablehlo.constant dense<-1> : tensor<i32>
    %4 = stablehlo.constant dense<4> : tensor<i32>
    %5 = stablehlo.constant dense<0.000000e+00> : tensor<5x2xf32>
    %6:2 = stablehlo.while(%arg2 = %4, %arg3 = %arg1) : tensor<i32>, tensor<2xf32>
    cond {
      %7 = stablehlo.compare GE, %arg2, %0 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %7 : tensor<i1>
    }
    do {
      %8 = stablehlo.dynamic_slice %arg0, %arg2, %0, sizes = [1, 2] : (tensor<5x2xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>
      %9 = stablehlo.reshape %8 : (tensor<1x2xf32>) -> tensor<2xf32>
      %10 = stablehlo.add %arg2, %3 : tensor<i32>
      %11 = stablehlo.dynamic_slice %arg0, %10, %0, sizes = [1, 2] : (tensor<5x2xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>
      %12 = stablehlo.reshape %11 : (tensor<1x2xf32>) -> tensor<2xf32>
      %13 = stablehlo.compare EQ, %arg2, %0 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %14 = stablehlo.select %13, %arg1, %12 : tensor<i1>, tensor<2xf32>
      %15 = stablehlo.multiply %9, %14 : tensor<2xf32>
      %16 = stablehlo.add %15, %arg3 : tensor<2xf32>
      stablehlo.return %10, %16 : tensor<i32>, tensor<2xf32>
    }
    return %6#1 : tensor<2xf32>
  }
}
// ---- after form_scans ----
module @before attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<5x2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 5, {"x"}: 2]>}, %arg1: tensor<2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 2]>}) -> (tensor<2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 2]>}) {
    %0 = "shardwise.scan"(%arg0, %arg0, %arg1, %arg1) <{dimension = 0 : i64, is_reverse = true, offsets = array<i64: 0, -1>, operandSegmentSizes = array<i32: 2, 1, 1>, resultSegmentSizes = array<i32: 0, 1>, scan_dim_size = 5 : i64}> ({
    ^bb0(%arg2: tensor<2xf32>, %arg3: tensor<2xf32>, %arg4: tensor<2xf32>):
      %1 = stablehlo.multiply %arg2, %arg3 : tensor<2xf32>
      %2 = stablehlo.add %1, %arg4 : tensor<2xf32>
      stablehlo.return %2 : tensor<2xf32>
    }) : (tensor<5x2xf32>, tensor<5x2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
