// passes: sdy-user-priority-propagate
module {
  sdy.mesh @mesh = <["y"=4]>
  func.func @main(%a: tensor<8xf32>, %p: tensor<i1>) -> (tensor<8xf32>) {
    %0 = "stablehlo.while"(%a) ({
    ^bb0(%s: tensor<8xf32>):
      "stablehlo.return"(%p) : (tensor<i1>) -> ()
    }, {
    ^bb0(%s: tensor<8xf32>):
      %1 = "sdy.sharding_constraint"(%s) <{sharding = #sdy.sharding<@mesh, [{"y"}]>}> : (tensor<8xf32>) -> (tensor<8xf32>) loc("n1")
      "stablehlo.return"(%1) : (tensor<8xf32>) -> ()
    }) : (tensor<8xf32>) -> (tensor<8xf32>) loc("n0")
    "func.return"(%0) : (tensor<8xf32>) -> ()
  }
}
