// A function is assigned like main: each call reshards its operands to the placements of its arguments.
module {
  sdy.mesh @mesh = <["a"=2, "b"=3]>
  func.func public @main(%arg0: tensor<5x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}, %arg1: tensor<8x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"b"}]>}, %arg2: tensor<12x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>}) -> (tensor<5x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
    %0 = func.call @layer(%arg0, %arg1, %arg2) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>} : (tensor<5x8xf32>, tensor<8x12xf32>, tensor<12x8xf32>) -> tensor<5x8xf32>
    %1 = func.call @layer(%0, %arg1, %arg2) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>} : (tensor<5x8xf32>, tensor<8x12xf32>, tensor<12x8xf32>) -> tensor<5x8xf32>
    return %1 : tensor<5x8xf32>
  }
  func.func private @layer(%arg0: tensor<5x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}, %arg1: tensor<8x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"b"}]>}, %arg2: tensor<12x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>}) -> (tensor<5x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {"b"}]>]>} : (tensor<5x8xf32>, tensor<8x12xf32>) -> tensor<5x12xf32>
    %1 = stablehlo.tanh %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {"b"}]>]>} : tensor<5x12xf32>
    %2 = stablehlo.dot_general %1, %arg2, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>} : (tensor<5x12xf32>, tensor<12x8xf32>) -> tensor<5x8xf32>
    %3 = stablehlo.add %arg0, %2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>} : tensor<5x8xf32>
    return %3 : tensor<5x8xf32>
  }
}
// ---- after assign ----
module attributes {shardwise.stage = "assigned"} {
  sdy.mesh @mesh = <["a"=2, "b"=3]>
  func.func public @main(%arg0: tensor<5x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}, %arg1: tensor<8x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"b"}]>}, %arg2: tensor<12x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>}) -> (tensor<5x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
    %0 = sdy.reshard %arg0 <@mesh, [{"a"}, {}]> {cause = "argument 0 of @layer"} : tensor<5x8xf32>
    %1 = func.call @layer(%0, %arg1, %arg2) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>} : (tensor<5x8xf32>, tensor<8x12xf32>, tensor<12x8xf32>) -> tensor<5x8xf32>
    %2 = func.call @layer(%1, %arg1, %arg2) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>} : (tensor<5x8xf32>, tensor<8x12xf32>, tensor<12x8xf32>) -> tensor<5x8xf32>
    %3 = sdy.reshard %2 <@mesh, [{}, {}]> {cause = "result 0"} : tensor<5x8xf32>
    return %3 : tensor<5x8xf32>
  }
  func.func private @layer(%arg0: tensor<5x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}, %arg1: tensor<8x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"b"}]>}, %arg2: tensor<12x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>}) -> (tensor<5x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {"b"}]>]>} : (tensor<5x8xf32>, tensor<8x12xf32>) -> tensor<5x12xf32>
    %1 = stablehlo.tanh %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {"b"}]>]>} : tensor<5x12xf32>
    %2 = stablehlo.dot_general %1, %arg2, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}], unreduced={"b"}>]>} : (tensor<5x12xf32>, tensor<12x8xf32>) -> tensor<5x8xf32>
    %3 = stablehlo.add %arg0, %2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}], unreduced={"b"}>]>} : tensor<5x8xf32>
    %4 = sdy.reshard %3 <@mesh, [{"a"}, {}]> {cause = "reduction in dot_general"} : tensor<5x8xf32>
    return %4 : tensor<5x8xf32>
  }
}
