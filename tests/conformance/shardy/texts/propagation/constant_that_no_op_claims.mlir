// The reshape is a constant nobody uses: it goes before anything is visited, and with it a visit of the iota.
module {
  sdy.mesh @mesh = <["a"=4, "b"=11]>
  func.func @main(%s8_0: tensor<i1>, %s5_0: tensor<9x1x4xi32>) -> (tensor<9x1x4xi32>) {
    %6 = "sdy.sharding_constraint"(%s5_0) <{sharding = #sdy.sharding<@mesh, [{"a":(2)2, "b", ?}, {}, {"a":(1)2}]>}> : (tensor<9x1x4xi32>) -> (tensor<9x1x4xi32>) loc("n6")
    %7 = "stablehlo.divide"(%s5_0, %s5_0) : (tensor<9x1x4xi32>, tensor<9x1x4xi32>) -> (tensor<9x1x4xi32>) loc("n7")
    %9 = "stablehlo.iota"() <{iota_dimension = 2 : i64}> : () -> (tensor<9x1x4xi32>) loc("n9")
    %10 = "stablehlo.select"(%s8_0, %7, %9) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"b", ?}, {}, {"a"}]>]>} : (tensor<i1>, tensor<9x1x4xi32>, tensor<9x1x4xi32>) -> (tensor<9x1x4xi32>) loc("n10")
    %11 = "stablehlo.reshape"(%9) : (tensor<9x1x4xi32>) -> (tensor<1x9x1x4xi32>) loc("n11")
    "func.return"(%10) : (tensor<9x1x4xi32>) -> ()
  }
}
