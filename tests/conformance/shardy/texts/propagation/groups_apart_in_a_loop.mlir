// Members that disagree from the start are told apart by open constraints, in loops where the value stands.
module {
  sdy.mesh @mesh = <["a"=7, "c"=4]>
  func.func @main(%a35: tensor<7x1xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {}], replicated={"c":(1)2}>}, %a92: tensor<9x1xf32>, %s42_0: tensor<i32>, %s41_0: tensor<i32>, %s37_0: tensor<7x1xf32>) -> (tensor<7x9xf32>) {
    %89:2 = "stablehlo.while"(%s41_0, %s37_0) ({
    ^bb0(%b43: tensor<i32>, %b44: tensor<7x1xf32>):
      %47 = "stablehlo.compare"(%b43, %s42_0) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> (tensor<i1>) loc("n48")
      "stablehlo.return"(%47) : (tensor<i1>) -> ()
    }, {
    ^bb0(%b49: tensor<i32>, %b50: tensor<7x1xf32>):
      sdy.sharding_group %a35 group_id=64 : tensor<7x1xf32> loc("n65")
      sdy.sharding_group %b50 group_id=64 : tensor<7x1xf32> loc("n67")
      "stablehlo.return"(%b49, %b50) : (tensor<i32>, tensor<7x1xf32>) -> ()
    }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [], replicated={"c"}>, <@mesh, [{}, {?}], replicated={"c"}>]>} : (tensor<i32>, tensor<7x1xf32>) -> (tensor<i32>, tensor<7x1xf32>) loc("n89")
    %93 = "stablehlo.dot_general"(%89#1, %a92) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>}> : (tensor<7x1xf32>, tensor<9x1xf32>) -> (tensor<7x9xf32>) loc("n93")
    "func.return"(%93) : (tensor<7x9xf32>) -> ()
  }
}
