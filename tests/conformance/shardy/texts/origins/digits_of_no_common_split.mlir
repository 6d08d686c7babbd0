// passes: sdy-aggressive-propagate
// A third of "b" is the beginning of a quarter to propagation: the first operand hands it on.
module {
  sdy.mesh @mesh = <["b"=12]>
  func.func @main(%x: tensor<1x24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"b":(1)4, ?}]>},
                  %y: tensor<2x24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"b":(1)3, "b":(6)2}]>})
      -> tensor<3x24xf32> {
    %0 = stablehlo.concatenate %x, %y, dim = 0 : (tensor<1x24xf32>, tensor<2x24xf32>) -> tensor<3x24xf32>
    return %0 : tensor<3x24xf32>
  }
}
