// Shardy's import turns constants into this op. It is read as a constant: one copy for each user.
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>}, %y: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b"}]>}) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %c = sdy.constant dense<1.0> : tensor<8x8xf32> loc("n0")
  %d = "sdy.constant"() <{value = dense<2.0> : tensor<8x8xf32>}> : () -> tensor<8x8xf32> loc("n1")
  %0 = stablehlo.add %x, %d : tensor<8x8xf32> loc("n2")
  %1 = stablehlo.add %y, %d : tensor<8x8xf32> loc("n3")
  %2 = stablehlo.multiply %0, %c : tensor<8x8xf32> loc("n4")
  return %1, %2 : tensor<8x8xf32>, tensor<8x8xf32>
}
