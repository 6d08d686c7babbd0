// Each branch makes the result where the op has it. A value that only a branch needs otherwise is moved in that branch.
module {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<i32>, %arg1: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %arg2: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
    %0 = "stablehlo.case"(%arg0) ({
      %1 = stablehlo.tanh %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<8x4xf32>
      stablehlo.return %1 : tensor<8x4xf32>
    }, {
      %2 = stablehlo.add %arg1, %arg2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<8x4xf32>
      stablehlo.return %2 : tensor<8x4xf32>
    }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<i32>) -> tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
}
// ---- after assign ----
module attributes {shardwise.stage = "assigned"} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<i32> {sdy.sharding = #sdy.sharding<@mesh, []>}, %arg1: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %arg2: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
    %0 = "stablehlo.case"(%arg0) ({
      %1 = stablehlo.tanh %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<8x4xf32>
      stablehlo.return %1 : tensor<8x4xf32>
    }, {
      %2 = sdy.reshard %arg2 <@mesh, [{"x"}, {}]> {cause = "operand 1 of add"} : tensor<8x4xf32>
      %3 = stablehlo.add %arg1, %2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<8x4xf32>
      stablehlo.return %3 : tensor<8x4xf32>
    }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<i32>) -> tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
}
