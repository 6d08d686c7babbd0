// passes: sdy-basic-propagate
// The second branch returns %x as its first value alone: the edge of the second one does not hear of it there.
module {
  sdy.mesh @mesh = <["a"=8]>
  func.func @main(%x: tensor<8xf32>, %i: tensor<i32>, %p: tensor<i1>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
    %0:2 = "stablehlo.case"(%i) ({
      "stablehlo.return"(%x, %x) : (tensor<8xf32>, tensor<8xf32>) -> ()
    }, {
      %2 = "stablehlo.while"(%x) ({
      ^bb0(%a: tensor<8xf32>):
        "stablehlo.return"(%p) : (tensor<i1>) -> ()
      }, {
      ^bb0(%a: tensor<8xf32>):
        "stablehlo.return"(%a) : (tensor<8xf32>) -> ()
      }) : (tensor<8xf32>) -> tensor<8xf32>
      "stablehlo.return"(%x, %2) : (tensor<8xf32>, tensor<8xf32>) -> ()
    }) : (tensor<i32>) -> (tensor<8xf32>, tensor<8xf32>)
    %1 = sdy.sharding_constraint %x <@mesh, [{"a", ?}]> : tensor<8xf32>
    return %0#0, %0#1, %1 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
  }
}
