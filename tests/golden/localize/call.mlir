// A function gets shards of its arguments, uneven ones too, and the calls stay.
module attributes {shardwise.stage = "resharded"} {
  sdy.mesh @mesh = <["a"=2, "b"=3]>
  func.func public @main(%arg0: tensor<5x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}, %arg1: tensor<8x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"b"}]>}, %arg2: tensor<12x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>}) -> (tensor<5x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
    %0 = sdy.all_to_all [{"a"}: 1->0] %arg0 out_sharding=<@mesh, [{"a"}, {}]> {cause = "argument 0 of @layer"} : tensor<5x8xf32>
    %1 = func.call @layer(%0, %arg1, %arg2) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>} : (tensor<5x8xf32>, tensor<8x12xf32>, tensor<12x8xf32>) -> tensor<5x8xf32>
    %2 = func.call @layer(%1, %arg1, %arg2) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>} : (tensor<5x8xf32>, tensor<8x12xf32>, tensor<12x8xf32>) -> tensor<5x8xf32>
    %3 = sdy.all_gather [{"a"}, {}] %2 out_sharding=<@mesh, [{}, {}]> {cause = "result 0"} : tensor<5x8xf32>
    return %3 : tensor<5x8xf32>
  }
  func.func private @layer(%arg0: tensor<5x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}, %arg1: tensor<8x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"b"}]>}, %arg2: tensor<12x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>}) -> (tensor<5x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {"b"}]>]>} : (tensor<5x8xf32>, tensor<8x12xf32>) -> tensor<5x12xf32>
    %1 = stablehlo.tanh %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {"b"}]>]>} : tensor<5x12xf32>
    %2 = stablehlo.dot_general %1, %arg2, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}], unreduced={"b"}>]>} : (tensor<5x12xf32>, tensor<12x8xf32>) -> tensor<5x8xf32>
    %3 = sdy.all_reduce {"b"} %2 out_sharding=<@mesh, [{"a"}, {}]> {cause = "reduction in dot_general"} : tensor<5x8xf32>
    %4 = stablehlo.add %arg0, %3 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>} : tensor<5x8xf32>
    return %4 : tensor<5x8xf32>
  }
}
// ---- after localize ----
module attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["a"=2, "b"=3]>
  func.func public @main(%arg0: tensor<5x4xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 5, {"a"}: 4]>}, %arg1: tensor<8x4xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 8, {"b"}: 4]>}, %arg2: tensor<4x8xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"b"}: 4, {}: 8]>}) -> tensor<5x8xf32> {
    %0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.pad %arg0, %0, low = [0, 0], high = [1, 0], interior = [0, 0] : (tensor<5x4xf32>, tensor<f32>) -> tensor<6x4xf32>
    %2 = "shardwise.all_to_all"(%1) <{mesh = @mesh, moves = [{axes = #sdy<axis_ref_list{"a"}>, from_dim = 1 : i64, to_dim = 0 : i64}], cause = "argument 0 of @layer"}> : (tensor<6x4xf32>) -> tensor<3x8xf32>
    %3 = func.call @layer(%2, %arg1, %arg2) : (tensor<3x8xf32>, tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
    %4 = func.call @layer(%3, %arg1, %arg2) : (tensor<3x8xf32>, tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
    %5 = "shardwise.all_gather"(%4) <{gather = #sdy<list_of_axis_ref_lists[{"a"}, {}]>, mesh = @mesh, cause = "result 0"}> : (tensor<3x8xf32>) -> tensor<6x8xf32>
    %6 = stablehlo.slice %5 [0:5, 0:8] : (tensor<6x8xf32>) -> tensor<5x8xf32>
    return %6 : tensor<5x8xf32>
  }
  func.func private @layer(%arg0: tensor<3x8xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"a"}: 3, {}: 8]> : tensor<5x8xf32>}, %arg1: tensor<8x4xf32> {shardwise.placement = #shardwise.placement<@mesh, [{}: 8, {"b"}: 4]>}, %arg2: tensor<4x8xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"b"}: 4, {}: 8]>}) -> (tensor<3x8xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"a"}: 3, {}: 8]> : tensor<5x8xf32>}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<3x8xf32>, tensor<8x4xf32>) -> tensor<3x4xf32>
    %1 = stablehlo.tanh %0 : tensor<3x4xf32>
    %2 = stablehlo.dot_general %1, %arg2, contracting_dims = [1] x [0] : (tensor<3x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
    %3 = "shardwise.all_reduce"(%2) <{axes = #sdy<axis_ref_list{"b"}>, mesh = @mesh, reducer = "sum", cause = "reduction in dot_general"}> : (tensor<3x8xf32>) -> tensor<3x8xf32>
    %4 = stablehlo.add %arg0, %3 : tensor<3x8xf32>
    return %4 : tensor<3x8xf32>
  }
}
