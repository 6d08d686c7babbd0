// The entry value of an unreduced carry: device 0 along the axes keeps it, the others start from -0.
module attributes {shardwise.stage = "resharded"} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %arg1: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
    %0 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} dense<0> : tensor<i32>
    %1 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} dense<10> : tensor<i32>
    %2 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} dense<1> : tensor<i32>
    %3 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} dense<0.000000e+00> : tensor<f32>
    %4:2 = stablehlo.while(%arg2 = %0, %arg3 = %arg1) : tensor<i32>, tensor<4xf32> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>, <@mesh, [{}], unreduced={"x"}>]>}
    cond {
      %5 = stablehlo.compare LT, %arg2, %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %5 : tensor<i1>
    }
    do {
      %6 = stablehlo.add %arg2, %2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} : tensor<i32>
      %7:2 = stablehlo.while(%arg4 = %0, %arg5 = %arg3) : tensor<i32>, tensor<4xf32> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>, <@mesh, [{}], unreduced={"x"}>]>}
      cond {
        %8 = stablehlo.compare LT, %arg4, %arg2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %8 : tensor<i1>
      }
      do {
        %9 = stablehlo.add %arg4, %2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} : tensor<i32>
        %10 = stablehlo.reduce(%arg0 init: %3) applies stablehlo.add across dimensions = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}], unreduced={"x"}>]>} : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
        %11 = stablehlo.add %arg5, %10 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}], unreduced={"x"}>]>} : tensor<4xf32>
        stablehlo.return %9, %11 : tensor<i32>, tensor<4xf32>
      }
      stablehlo.return %6, %7#1 : tensor<i32>, tensor<4xf32>
    }
    %12 = sdy.all_reduce {"x"} %4#1 out_sharding=<@mesh, [{}]> {cause = "reduction in reduce, after the loop"} : tensor<4xf32>
    return %12 : tensor<4xf32>
  }
}
// ---- after localize ----
module attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<4x4xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 4, {}: 4]>}, %arg1: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.constant dense<10> : tensor<i32>
    %2 = stablehlo.constant dense<1> : tensor<i32>
    %3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.constant dense<0> : tensor<i32>
    %5 = "shardwise.axis_index"() <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh}> : () -> tensor<i32>
    %6 = stablehlo.compare EQ, %5, %4 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %7 = stablehlo.constant dense<-0.000000e+00> : tensor<4xf32>
    %8 = stablehlo.select %6, %arg1, %7 : tensor<i1>, tensor<4xf32>
    %9:2 = stablehlo.while(%arg2 = %0, %arg3 = %8) : tensor<i32>, tensor<4xf32>
    cond {
      %10 = stablehlo.compare LT, %arg2, %1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %10 : tensor<i1>
    }
    do {
      %11 = stablehlo.add %arg2, %2 : tensor<i32>
      %12:2 = stablehlo.while(%arg4 = %0, %arg5 = %arg3) : tensor<i32>, tensor<4xf32>
      cond {
        %13 = stablehlo.compare LT, %arg4, %arg2 : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %13 : tensor<i1>
      }
      do {
        %14 = stablehlo.add %arg4, %2 : tensor<i32>
        %15 = stablehlo.reduce(%arg0 init: %3) applies stablehlo.add across dimensions = [0] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
        %16 = stablehlo.add %arg5, %15 : tensor<4xf32>
        stablehlo.return %14, %16 : tensor<i32>, tensor<4xf32>
      }
      stablehlo.return %11, %12#1 : tensor<i32>, tensor<4xf32>
    }
    %17 = "shardwise.all_reduce"(%9#1) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "sum", cause = "reduction in reduce, after the loop"}> : (tensor<4xf32>) -> tensor<4xf32>
    return %17 : tensor<4xf32>
  }
}
