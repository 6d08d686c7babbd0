// The end of a branch is a later use of the head's input; the end of main is not.
module {
  sdy.mesh @mesh = <["b"=8, "c"=8, "d"=4]>
  func.func @main(%x: tensor<8x4xf32>, %p: tensor<i32>) -> (tensor<8x4xf32>) {
    %0 = "stablehlo.case"(%p) ({
      %1 = "sdy.sharding_constraint"(%x) <{sharding = #sdy.sharding<@mesh, [{"b"}, {"d"}]>}> : (tensor<8x4xf32>) -> (tensor<8x4xf32>) loc("n1")
      %2 = "sdy.sharding_constraint"(%1) <{sharding = #sdy.sharding<@mesh, [{"b"}, {"c"}]>}> : (tensor<8x4xf32>) -> (tensor<8x4xf32>) loc("n2")
      "stablehlo.return"(%x) : (tensor<8x4xf32>) -> ()
    }, {
      "stablehlo.return"(%x) : (tensor<8x4xf32>) -> ()
    }) : (tensor<i32>) -> (tensor<8x4xf32>) loc("n0")
    "func.return"(%0) : (tensor<8x4xf32>) -> ()
  }
}
