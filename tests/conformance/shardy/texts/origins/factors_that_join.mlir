// passes: sdy-aggressive-propagate
// "a" of %y is made of digits that %x has on factor i and the result on factor k: the minor ones say where it is from.
module {
  sdy.mesh @mesh = <["a"=8]>
  func.func @main(%x: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}, %y: tensor<8xf32>)
      -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) {
    %0 = stablehlo.custom_call @mix(%x, %y) {
        sdy.sharding_rule = #sdy.op_sharding_rule<([ij], [ik])->([ik]) {i=2, j=8, k=4}, custom>
    } : (tensor<16xf32>, tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
