// A row that each trip reads, and one that it writes: an input and an output. The counter goes.
module @rows attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<5x2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 5, {"x"}: 2]>}, %arg1: tensor<2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 2]>}) -> (tensor<5x2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 5, {"x"}: 2]>}, tensor<2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 2]>}) {
    %0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.constant dense<1> : tensor<i32>
    %2 = stablehlo.constant dense<5> : tensor<i32>
    %3 = stablehlo.constant dense<-1> : tensor<i32>
    %4 = stablehlo.constant dense<4> : tensor<i32>
    %5 = stablehlo.constant dense<0.000000e+00> : tensor<5x2xf32>
    %6:3 = stablehlo.while(%arg2 = %0, %arg3 = %arg1, %arg4 = %5) : tensor<i32>, tensor<2xf32>, tensor<5x2xf32>
    cond {
      %7 = stablehlo.compare LT, %arg2, %2 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %7 : tensor<i1>
    }
    do {
      %8 = stablehlo.dynamic_slice %arg0, %arg2, %0, sizes = [1, 2] : (tensor<5x2xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>
      %9 = stablehlo.reshape %8 : (tensor<1x2xf32>) -> tensor<2xf32>
      %10 = stablehlo.add %9, %arg3 : tensor<2xf32>
      %11 = stablehlo.reshape %10 : (tensor<2xf32>) -> tensor<1x2xf32>
      %12 = stablehlo.dynamic_update_slice %arg4, %11, %arg2, %0 : (tensor<5x2xf32>, tensor<1x2xf32>, tensor<i32>, tensor<i32>) -> tensor<5x2xf32>
      %13 = stablehlo.add %arg2, %1 : tensor<i32>
      stablehlo.return %13, %10, %12 : tensor<i32>, tensor<2xf32>, tensor<5x2xf32>
    }
    return %6#2, %6#1 : tensor<5x2xf32>, tensor<2xf32>
  }
}
// ---- after form_scans ----
module @rows attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<5x2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 5, {"x"}: 2]>}, %arg1: tensor<2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 2]>}) -> (tensor<5x2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 5, {"x"}: 2]>}, tensor<2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 2]>}) {
    %0:2 = "shardwise.scan"(%arg0, %arg1) <{dimension = 0 : i64, offsets = array<i64: 0>, operandSegmentSizes = array<i32: 1, 0, 1>, resultSegmentSizes = array<i32: 1, 1>, scan_dim_size = 5 : i64}> ({
    ^bb0(%arg2: tensor<2xf32>, %arg3: tensor<2xf32>):
      %1 = stablehlo.add %arg2, %arg3 : tensor<2xf32>
      stablehlo.return %1, %1 : tensor<2xf32>, tensor<2xf32>
    }) : (tensor<5x2xf32>, tensor<2xf32>) -> (tensor<5x2xf32>, tensor<2xf32>)
    return %0#0, %0#1 : tensor<5x2xf32>, tensor<2xf32>
  }
}
