// One result of main spreads to another one through a group.
module {
  sdy.mesh @mesh = <["a"=8, "b"=4, "c"=4]>
  func.func @main(%a1: tensor<7x8xi32>) -> (tensor<7x8xi32>, tensor<7x8xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b", ?}, {"c", ?}]>}) {
    %3 = "stablehlo.reverse"(%a1) <{dimensions = array<i64: 0>}> : (tensor<7x8xi32>) -> (tensor<7x8xi32>) loc("n3")
    sdy.sharding_group %3 group_id=6 : tensor<7x8xi32> loc("n7")
    sdy.sharding_group %a1 group_id=6 : tensor<7x8xi32> loc("n8")
    "func.return"(%3, %a1) : (tensor<7x8xi32>, tensor<7x8xi32>) -> ()
  }
}
