// A loop with an uneven carry: offsets and masks of rows are made once, before the loop.
module attributes {shardwise.stage = "resharded"} {
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  func.func public @main(%arg0: tensor<7x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %arg1: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}, %arg2: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}) -> (tensor<7x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
    %0 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} dense<0> : tensor<i32>
    %1 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} dense<10> : tensor<i32>
    %2 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} dense<1> : tensor<i32>
    %3 = sdy.all_gather [{}, {"x"}] %arg1 out_sharding=<@mesh, [{}, {}]> {cause = "operand 1 of dot_general"} : tensor<4x4xf32>
    %4 = sdy.all_gather [{"y"}, {}] %arg2 out_sharding=<@mesh, [{}, {}]> {cause = "operand 1 of dot_general"} : tensor<4x4xf32>
    %5:2 = stablehlo.while(%arg3 = %0, %arg4 = %arg0) : tensor<i32>, tensor<7x4xf32> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>, <@mesh, [{"x"}, {}]>]>}
    cond {
      %6 = stablehlo.compare LT, %arg3, %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %6 : tensor<i1>
    }
    do {
      %7 = stablehlo.add %arg3, %2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} : tensor<i32>
      %8 = stablehlo.dot_general %arg4, %3, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<7x4xf32>, tensor<4x4xf32>) -> tensor<7x4xf32>
      %9 = stablehlo.dot_general %8, %4, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<7x4xf32>, tensor<4x4xf32>) -> tensor<7x4xf32>
      %10 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} dense<1.000000e+00> : tensor<f32>
      %11 = stablehlo.reduce(%9 init: %10) applies stablehlo.multiply across dimensions = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}], unreduced=prod{"x"}>]>} : (tensor<7x4xf32>, tensor<f32>) -> tensor<4xf32>
      %12 = sdy.all_reduce {"x"} %11 out_sharding=<@mesh, [{}]> {cause = "reduction in reduce"} : tensor<4xf32>
      %13 = stablehlo.broadcast_in_dim %12, dims = [1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<4xf32>) -> tensor<7x4xf32>
      %14 = stablehlo.add %9, %13 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<7x4xf32>
      stablehlo.return %7, %14 : tensor<i32>, tensor<7x4xf32>
    }
    return %5#1 : tensor<7x4xf32>
  }
}
// ---- after localize ----
module attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  func.func public @main(%arg0: tensor<4x4xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 4, {}: 4]> : tensor<7x4xf32>}, %arg1: tensor<4x2xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 4, {"x"}: 2]>}, %arg2: tensor<2x4xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"y"}: 2, {}: 4]>}) -> (tensor<4x4xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 4, {}: 4]> : tensor<7x4xf32>}) {
    %0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.constant dense<10> : tensor<i32>
    %2 = stablehlo.constant dense<1> : tensor<i32>
    %3 = "shardwise.all_gather"(%arg1) <{gather = #sdy<list_of_axis_ref_lists[{}, {"x"}]>, mesh = @mesh, cause = "operand 1 of dot_general"}> : (tensor<4x2xf32>) -> tensor<4x4xf32>
    %4 = "shardwise.all_gather"(%arg2) <{gather = #sdy<list_of_axis_ref_lists[{"y"}, {}]>, mesh = @mesh, cause = "operand 1 of dot_general"}> : (tensor<2x4xf32>) -> tensor<4x4xf32>
    %5 = "shardwise.axis_index"() <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh}> : () -> tensor<i32>
    %6 = stablehlo.constant dense<4> : tensor<i32>
    %7 = stablehlo.multiply %5, %6 : tensor<i32>
    %8 = stablehlo.constant dense<7> : tensor<i32>
    %9 = stablehlo.subtract %8, %7 : tensor<i32>
    %10 = stablehlo.iota dim = 0 : tensor<4xi32>
    %11 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %12 = stablehlo.compare LT, %10, %11 : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %13:2 = stablehlo.while(%arg3 = %0, %arg4 = %arg0) : tensor<i32>, tensor<4x4xf32>
    cond {
      %14 = stablehlo.compare LT, %arg3, %1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %14 : tensor<i1>
    }
    do {
      %15 = stablehlo.add %arg3, %2 : tensor<i32>
      %16 = stablehlo.dot_general %arg4, %3, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      %17 = stablehlo.dot_general %16, %4, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      %18 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %19 = stablehlo.broadcast_in_dim %12, dims = [0] : (tensor<4xi1>) -> tensor<4x4xi1>
      %20 = stablehlo.constant dense<1.000000e+00> : tensor<4x4xf32>
      %21 = stablehlo.select %19, %17, %20 : tensor<4x4xi1>, tensor<4x4xf32>
      %22 = stablehlo.reduce(%21 init: %18) applies stablehlo.multiply across dimensions = [0] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
      %23 = "shardwise.all_reduce"(%22) <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh, reducer = "prod", cause = "reduction in reduce"}> : (tensor<4xf32>) -> tensor<4xf32>
      %24 = stablehlo.broadcast_in_dim %23, dims = [1] : (tensor<4xf32>) -> tensor<4x4xf32>
      %25 = stablehlo.add %17, %24 : tensor<4x4xf32>
      stablehlo.return %15, %25 : tensor<i32>, tensor<4x4xf32>
    }
    return %13#1 : tensor<4x4xf32>
  }
}
