// A gathered weight is gathered again for its second use, where there is no room for two.
// option memory_limit=64880
module @jit_gather attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<32x64xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 32, {}: 64]>}, %arg1: tensor<16x64xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 16, {}: 64]>}, %arg2: tensor<16x64xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 16, {}: 64]>}) -> (tensor<32x64xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 32, {}: 64]>}) {
    %0 = "shardwise.all_gather"(%arg1) <{gather = #sdy<list_of_axis_ref_lists[{"x"}, {}]>, mesh = @mesh, cause = "annotation"}> : (tensor<16x64xf32>) -> tensor<64x64xf32>
    %1 = stablehlo.dot_general %arg0, %0, contracting_dims = [1] x [0] : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
    %2 = stablehlo.tanh %1 : tensor<32x64xf32>
    %3 = "shardwise.all_gather"(%arg2) <{gather = #sdy<list_of_axis_ref_lists[{"x"}, {}]>, mesh = @mesh, cause = "annotation"}> : (tensor<16x64xf32>) -> tensor<64x64xf32>
    %4 = stablehlo.dot_general %2, %3, contracting_dims = [1] x [0] : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
    %5 = stablehlo.tanh %4 : tensor<32x64xf32>
    %6 = stablehlo.dot_general %5, %3, contracting_dims = [1] x [0] : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
    %7 = stablehlo.tanh %6 : tensor<32x64xf32>
    %8 = stablehlo.dot_general %7, %0, contracting_dims = [1] x [1] : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
    return %8 : tensor<32x64xf32>
  }
}
// ---- after rematerialize ----
module @jit_gather attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<32x64xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 32, {}: 64]>}, %arg1: tensor<16x64xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 16, {}: 64]>}, %arg2: tensor<16x64xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 16, {}: 64]>}) -> (tensor<32x64xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 32, {}: 64]>}) {
    %0 = "shardwise.all_gather"(%arg1) <{gather = #sdy<list_of_axis_ref_lists[{"x"}, {}]>, mesh = @mesh, cause = "annotation"}> : (tensor<16x64xf32>) -> tensor<64x64xf32>
    %1 = stablehlo.dot_general %arg0, %0, contracting_dims = [1] x [0] : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
    %2 = stablehlo.tanh %1 : tensor<32x64xf32>
    %3 = "shardwise.all_gather"(%arg2) <{gather = #sdy<list_of_axis_ref_lists[{"x"}, {}]>, mesh = @mesh, cause = "annotation"}> : (tensor<16x64xf32>) -> tensor<64x64xf32>
    %4 = stablehlo.dot_general %2, %3, contracting_dims = [1] x [0] : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
    %5 = stablehlo.tanh %4 : tensor<32x64xf32>
    %6 = stablehlo.dot_general %5, %3, contracting_dims = [1] x [0] : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
    %7 = stablehlo.tanh %6 : tensor<32x64xf32>
    %8 = "shardwise.all_gather"(%arg1) <{gather = #sdy<list_of_axis_ref_lists[{"x"}, {}]>, mesh = @mesh, cause = "annotation"}> {shardwise.again = 1 : i64} : (tensor<16x64xf32>) -> tensor<64x64xf32>
    %9 = stablehlo.dot_general %7, %8, contracting_dims = [1] x [1] : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
    return %9 : tensor<32x64xf32>
  }
}
