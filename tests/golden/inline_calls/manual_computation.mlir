// A manual computation is batched along its axes: rows along {x, y}, which lose x in the sum. The position along y,
// computed from the number of the device, has rows along y alone.
module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main(%arg0: tensor<16x8xf32>) -> tensor<8x8xf32> {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}, {"y"}]>] out_shardings=[<@mesh, [{}, {"y"}]>] manual_axes={"x", "y"} (%arg1: tensor<8x2xf32>) {
      %1 = stablehlo.sine %arg1 : tensor<8x2xf32>
      %2 = func.call @sum(%1) : (tensor<8x2xf32>) -> tensor<8x2xf32>
      %3 = stablehlo.partition_id : tensor<ui32>
      %4 = stablehlo.constant dense<4> : tensor<ui32>
      %5 = stablehlo.remainder %3, %4 : tensor<ui32>
      %6 = stablehlo.convert %5 : (tensor<ui32>) -> tensor<f32>
      %7 = stablehlo.broadcast_in_dim %6, dims = [] : (tensor<f32>) -> tensor<8x2xf32>
      %8 = stablehlo.add %2, %7 : tensor<8x2xf32>
      sdy.return %8 : tensor<8x2xf32>
    } : (tensor<16x8xf32>) -> tensor<8x8xf32>
    return %0 : tensor<8x8xf32>
  }
  func.func private @sum(%arg0: tensor<8x2xf32>) -> tensor<8x2xf32> {
    %0 = "stablehlo.all_reduce"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 4], [1, 5], [2, 6], [3, 7]]> : tensor<4x2xi64>, use_global_device_ids}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %1 = stablehlo.add %arg1, %arg2 : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<8x2xf32>) -> tensor<8x2xf32>
    return %0 : tensor<8x2xf32>
  }
}
// ---- after inline_calls ----
module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main(%arg0: tensor<16x8xf32>) -> tensor<8x8xf32> {
    %0 = sdy.sharding_constraint %arg0 <@mesh, [{"x"}, {"y"}]> : tensor<16x8xf32>
    %1 = stablehlo.reshape %0 : (tensor<16x8xf32>) -> tensor<2x8x4x2xf32>
    %2 = stablehlo.transpose %1, dims = [0, 2, 1, 3] : (tensor<2x8x4x2xf32>) -> tensor<2x4x8x2xf32>
    %3 = stablehlo.reshape %2 : (tensor<2x4x8x2xf32>) -> tensor<8x8x2xf32>
    %4 = sdy.sharding_constraint %3 <@mesh, [{"x", "y"}, {}, {}]> : tensor<8x8x2xf32>
    %5 = stablehlo.sine %4 : tensor<8x8x2xf32>
    %6 = stablehlo.reshape %5 : (tensor<8x8x2xf32>) -> tensor<2x4x8x2xf32>
    %7 = stablehlo.transpose %6, dims = [1, 0, 2, 3] : (tensor<2x4x8x2xf32>) -> tensor<4x2x8x2xf32>
    %8 = stablehlo.constant dense<-0.000000e+00> : tensor<f32>
    %9 = stablehlo.reduce(%7 init: %8) applies stablehlo.add across dimensions = [1] : (tensor<4x2x8x2xf32>, tensor<f32>) -> tensor<4x8x2xf32>
    %10 = sdy.sharding_constraint %9 <@mesh, [{"y"}, {?}, {?}], replicated={"x"}> : tensor<4x8x2xf32>
    %11 = stablehlo.iota dim = 0 : tensor<2x4xui32>
    %12 = stablehlo.constant dense<4> : tensor<2x4xui32>
    %13 = stablehlo.multiply %11, %12 : tensor<2x4xui32>
    %14 = stablehlo.iota dim = 1 : tensor<2x4xui32>
    %15 = stablehlo.add %13, %14 : tensor<2x4xui32>
    %16 = stablehlo.reshape %15 : (tensor<2x4xui32>) -> tensor<8xui32>
    %17 = stablehlo.constant dense<4> : tensor<ui32>
    %18 = stablehlo.iota dim = 0 : tensor<4xui32>
    %19 = stablehlo.convert %18 : (tensor<4xui32>) -> tensor<4xf32>
    %20 = stablehlo.broadcast_in_dim %19, dims = [0] : (tensor<4xf32>) -> tensor<4x8x2xf32>
    %21 = stablehlo.add %10, %20 : tensor<4x8x2xf32>
    %22 = sdy.sharding_constraint %21 <@mesh, [{"y"}, {}, {}], replicated={"x"}> : tensor<4x8x2xf32>
    %23 = stablehlo.transpose %22, dims = [1, 0, 2] : (tensor<4x8x2xf32>) -> tensor<8x4x2xf32>
    %24 = stablehlo.reshape %23 : (tensor<8x4x2xf32>) -> tensor<8x8xf32>
    %25 = sdy.sharding_constraint %24 <@mesh, [{}, {"y"}], replicated={"x"}> : tensor<8x8xf32>
    return %25 : tensor<8x8xf32>
  }
}
