// A roll: the exchange of the rows at the end is part of the one that joins them.
module @"jit_<lambda>" attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=8]>
  func.func public @main(%arg0: tensor<8x4xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 8, {}: 4]>}) -> (tensor<8x4xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 8, {}: 4]>}) {
    %0 = "shardwise.exchange"(%arg0) <{from = [[{axes = #sdy<axis_ref_list{"x"}>, offset = 61 : i64}, {}]], mesh = @mesh, to = [{axes = #sdy<axis_ref_list{"x"}>, rows = 1 : i64, size = 3 : i64}, {rows = 4 : i64}], cause = "exchange of slice along dim 0"}> : (tensor<8x4xf32>) -> tensor<1x4xf32>
    %1 = stablehlo.reshape %arg0 : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %2 = "shardwise.exchange"(%0, %1) <{from = [[{axes = #sdy<axis_ref_list{"x"}>, end = 3 : i64, size = 3 : i64}, {}], [{axes = #sdy<axis_ref_list{"x"}>, begin = 3 : i64, offset = -3 : i64, size = 61 : i64}, {}]], mesh = @mesh, to = [{axes = #sdy<axis_ref_list{"x"}>, rows = 8 : i64}, {rows = 4 : i64}], cause = "exchange of concatenate along dim 0"}> : (tensor<1x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    return %2 : tensor<8x4xf32>
  }
}
// ---- after optimize_collectives ----
module @"jit_<lambda>" attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=8]>
  func.func public @main(%arg0: tensor<8x4xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 8, {}: 4]>}) -> (tensor<8x4xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 8, {}: 4]>}) {
    %0 = stablehlo.reshape %arg0 : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %1 = "shardwise.exchange"(%arg0, %0) <{from = [[{axes = #sdy<axis_ref_list{"x"}>, end = 3 : i64, offset = 61 : i64}, {}], [{axes = #sdy<axis_ref_list{"x"}>, begin = 3 : i64, offset = -3 : i64, size = 61 : i64}, {}]], mesh = @mesh, to = [{axes = #sdy<axis_ref_list{"x"}>, rows = 8 : i64}, {rows = 4 : i64}], cause = "exchange of concatenate along dim 0"}> : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    return %1 : tensor<8x4xf32>
  }
}
