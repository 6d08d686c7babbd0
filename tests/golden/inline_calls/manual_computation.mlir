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
