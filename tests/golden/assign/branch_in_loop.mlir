// What a branch in a loop needs of a value from around the loop is made before the loop.
module {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %arg1: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
    %0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.constant dense<1> : tensor<i32>
    %2 = stablehlo.constant dense<10> : tensor<i32>
    %3:2 = stablehlo.while(%arg2 = %0, %arg3 = %arg0) : tensor<i32>, tensor<8x4xf32> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>, <@mesh, [{"x"}, {}]>]>}
    cond {
      %4 = stablehlo.compare LT, %arg2, %2 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %4 : tensor<i1>
    }
    do {
      %5 = stablehlo.add %arg2, %1 : tensor<i32>
      %6 = "stablehlo.case"(%arg2) ({
        %7 = stablehlo.add %arg3, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<8x4xf32>
        stablehlo.return %7 : tensor<8x4xf32>
      }, {
        stablehlo.return %arg3 : tensor<8x4xf32>
      }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<i32>) -> tensor<8x4xf32>
      stablehlo.return %5, %6 : tensor<i32>, tensor<8x4xf32>
    }
    return %3#1 : tensor<8x4xf32>
  }
}
// ---- after assign ----
module attributes {shardwise.stage = "assigned"} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %arg1: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
    %0 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} dense<0> : tensor<i32>
    %1 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} dense<10> : tensor<i32>
    %2 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} dense<1> : tensor<i32>
    %3 = sdy.reshard %arg1 <@mesh, [{"x"}, {}]> {cause = "operand 1 of add"} : tensor<8x4xf32>
    %4:2 = stablehlo.while(%arg2 = %0, %arg3 = %arg0) : tensor<i32>, tensor<8x4xf32> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>, <@mesh, [{"x"}, {}]>]>}
    cond {
      %5 = stablehlo.compare LT, %arg2, %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %5 : tensor<i1>
    }
    do {
      %6 = stablehlo.add %arg2, %2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} : tensor<i32>
      %7 = "stablehlo.case"(%arg2) ({
        %8 = stablehlo.add %arg3, %3 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<8x4xf32>
        stablehlo.return %8 : tensor<8x4xf32>
      }, {
        stablehlo.return %arg3 : tensor<8x4xf32>
      }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<i32>) -> tensor<8x4xf32>
      stablehlo.return %6, %7 : tensor<i32>, tensor<8x4xf32>
    }
    return %4#1 : tensor<8x4xf32>
  }
}
