// All dims open is no sharding of a member.
module {
  sdy.mesh @mesh = <["a"=1, "b"=4]>
  func.func @main(%a1: tensor<3xf32>, %s15_0: tensor<i32>) -> (tensor<3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}]>}) {
    %16:2 = "stablehlo.case"(%s15_0) ({
      "stablehlo.return"(%a1, %a1) : (tensor<3xf32>, tensor<3xf32>) -> ()
    }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>, <@mesh, [{?}]>]>} : (tensor<i32>) -> (tensor<3xf32>, tensor<3xf32>) loc("n16")
    %25 = "stablehlo.tanh"(%16#0) : (tensor<3xf32>) -> (tensor<3xf32>) loc("n25")
    sdy.sharding_group %16#0 group_id=33 : tensor<3xf32> loc("n35")
    sdy.sharding_group %16#1 group_id=33 : tensor<3xf32> loc("n36")
    "func.return"(%25) : (tensor<3xf32>) -> ()
  }
}
