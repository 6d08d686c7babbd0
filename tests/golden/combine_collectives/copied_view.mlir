// The division and the sum are one kernel, which does not wait for the widened copy that an all_gather sends.
module @f attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["d"=8]>
  func.func public @main(%arg0: tensor<8x32xbf16>, %arg1: tensor<8x32xbf16>, %arg2: tensor<8x32xf32>) -> (tensor<64x32xf32>, tensor<64x32xf32>, tensor<8xf32>) {
    %0 = stablehlo.divide %arg0, %arg1 : tensor<8x32xbf16>
    %1 = stablehlo.convert %0 : (tensor<8x32xbf16>) -> tensor<8x32xf32>
    %2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %3 = "shardwise.all_gather"(%1) <{gather = #sdy<list_of_axis_ref_lists[{"d"}, {}]>, mesh = @mesh, cause = "result 0"}> : (tensor<8x32xf32>) -> tensor<64x32xf32>
    %4 = "shardwise.all_gather"(%arg2) <{gather = #sdy<list_of_axis_ref_lists[{"d"}, {}]>, mesh = @mesh, cause = "result 1"}> : (tensor<8x32xf32>) -> tensor<64x32xf32>
    %5 = stablehlo.reduce(%1 init: %2) applies stablehlo.add across dimensions = [1] : (tensor<8x32xf32>, tensor<f32>) -> tensor<8xf32>
    return %3, %4, %5 : tensor<64x32xf32>, tensor<64x32xf32>, tensor<8xf32>
  }
}
// ---- after combine_collectives ----
module @f attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["d"=8]>
  func.func public @main(%arg0: tensor<8x32xbf16>, %arg1: tensor<8x32xbf16>, %arg2: tensor<8x32xf32>) -> (tensor<64x32xf32>, tensor<64x32xf32>, tensor<8xf32>) {
    %0 = stablehlo.divide %arg0, %arg1 : tensor<8x32xbf16>
    %1 = stablehlo.convert %0 : (tensor<8x32xbf16>) -> tensor<8x32xf32>
    %2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %3 = "shardwise.all_gather"(%1) <{gather = #sdy<list_of_axis_ref_lists[{"d"}, {}]>, mesh = @mesh, cause = "result 0"}> : (tensor<8x32xf32>) -> tensor<64x32xf32>
    %4 = "shardwise.all_gather"(%arg2) <{gather = #sdy<list_of_axis_ref_lists[{"d"}, {}]>, mesh = @mesh, cause = "result 1"}> : (tensor<8x32xf32>) -> tensor<64x32xf32>
    %5 = stablehlo.reduce(%1 init: %2) applies stablehlo.add across dimensions = [1] : (tensor<8x32xf32>, tensor<f32>) -> tensor<8xf32>
    return %3, %4, %5 : tensor<64x32xf32>, tensor<64x32xf32>, tensor<8xf32>
  }
}
