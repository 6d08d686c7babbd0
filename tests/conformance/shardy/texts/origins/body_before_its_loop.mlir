// passes: sdy-aggressive-propagate
// %0 is what the loop begins with, and is used in its body: the body hears of the axis first.
module {
  sdy.mesh @mesh = <["a"=2]>
  func.func @main(%x: tensor<8x8xf32>, %p: tensor<i1>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
    %0 = stablehlo.tanh %x : tensor<8x8xf32>
    %1 = "stablehlo.while"(%0) ({
    ^bb0(%a: tensor<8x8xf32>):
      "stablehlo.return"(%p) : (tensor<i1>) -> ()
    }, {
    ^bb0(%a: tensor<8x8xf32>):
      %3 = stablehlo.transpose %0, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
      "stablehlo.return"(%3) : (tensor<8x8xf32>) -> ()
    }) : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %2 = sdy.sharding_constraint %x <@mesh, [{"a", ?}, {?}]> : tensor<8x8xf32>
    return %1, %2 : tensor<8x8xf32>, tensor<8x8xf32>
  }
}
