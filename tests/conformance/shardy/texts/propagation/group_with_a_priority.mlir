// passes: sdy-user-priority-propagate
module {
  sdy.mesh @mesh = <["x"=2]>
  func.func @main(%a: tensor<8x8xf32>) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"x", ?}]>}) {
    %0 = "sdy.sharding_constraint"(%a) <{sharding = #sdy.sharding<@mesh, [{"x"}p1, {?}]>}> : (tensor<8x8xf32>) -> (tensor<8x8xf32>) loc("n0")
    %1 = "stablehlo.tanh"(%0) : (tensor<8x8xf32>) -> (tensor<8x8xf32>) loc("n1")
    sdy.sharding_group %0 group_id=0 : tensor<8x8xf32> loc("n2")
    sdy.sharding_group %1 group_id=0 : tensor<8x8xf32> loc("n3")
    "func.return"(%1) : (tensor<8x8xf32>) -> ()
  }
}
