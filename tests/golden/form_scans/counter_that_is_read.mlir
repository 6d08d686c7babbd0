// The counter stays a carry, because the body adds it up.
module @counter attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<5x2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 5, {"x"}: 2]>}, %arg1: tensor<2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 2]>}) -> (tensor<i32>, tensor<2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 2]>}) {
    %0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.constant dense<1> : tensor<i32>
    %2 = stablehlo.constant dense<5> : tensor<i32>
    %3 = stablehlo.constant dense<-1> : tensor<i32>
    %4 = stablehlo.constant dense<4> : tensor<i32>
    %5 = stablehlo.constant dense<0.000000e+00> : tensor<5x2xf32>
    %6:3 = stablehlo.while(%arg2 = %0, %arg3 = %0, %arg4 = %arg1) : tensor<i32>, tensor<i32>, tensor<2xf32>
    cond {
      %7 = stablehlo.compare LT, %arg2, %2 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %7 : tensor<i1>
    }
    do {
      %8 = stablehlo.dynamic_slice %arg0, %arg2, %0, sizes = [1, 2] : (tensor<5x2xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>
      %9 = stablehlo.reshape %8 : (tensor<1x2xf32>) -> tensor<2xf32>
      %10 = stablehlo.add %9, %arg4 : tensor<2xf32>
      %11 = stablehlo.add %arg3, %arg2 : tensor<i32>
      %12 = stablehlo.add %arg2, %1 : tensor<i32>
      stablehlo.return %12, %11, %10 : tensor<i32>, tensor<i32>, tensor<2xf32>
    }
    return %6#1, %6#2 : tensor<i32>, tensor<2xf32>
  }
}
// ---- after form_scans ----
module @counter attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<5x2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 5, {"x"}: 2]>}, %arg1: tensor<2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 2]>}) -> (tensor<i32>, tensor<2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 2]>}) {
    %0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.constant dense<1> : tensor<i32>
    %2:3 = "shardwise.scan"(%arg0, %0, %0, %arg1) <{dimension = 0 : i64, offsets = array<i64: 0>, operandSegmentSizes = array<i32: 1, 0, 3>, resultSegmentSizes = array<i32: 0, 3>, scan_dim_size = 5 : i64}> ({
    ^bb0(%arg2: tensor<2xf32>, %arg3: tensor<i32>, %arg4: tensor<i32>, %arg5: tensor<2xf32>):
      %3 = stablehlo.add %arg2, %arg5 : tensor<2xf32>
      %4 = stablehlo.add %arg4, %arg3 : tensor<i32>
      %5 = stablehlo.add %arg3, %1 : tensor<i32>
      stablehlo.return %5, %4, %3 : tensor<i32>, tensor<i32>, tensor<2xf32>
    }) : (tensor<5x2xf32>, tensor<i32>, tensor<i32>, tensor<2xf32>) -> (tensor<i32>, tensor<i32>, tensor<2xf32>)
    return %2#1, %2#2 : tensor<i32>, tensor<2xf32>
  }
}
