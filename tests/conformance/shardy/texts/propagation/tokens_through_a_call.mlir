// Tokens have no dims to shard: values beside them propagate.
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>}, %t: !stablehlo.token) -> (tensor<8x8xf32>, !stablehlo.token) {
  %0:2 = func.call @f(%x, %t) : (tensor<8x8xf32>, !stablehlo.token) -> (tensor<8x8xf32>, !stablehlo.token) loc("n0")
  %1:2 = func.call @f(%0#0, %0#1) : (tensor<8x8xf32>, !stablehlo.token) -> (tensor<8x8xf32>, !stablehlo.token) loc("n1")
  return %1#0, %1#1 : tensor<8x8xf32>, !stablehlo.token
}
func.func private @f(%y: tensor<8x8xf32>, %t: !stablehlo.token) -> (tensor<8x8xf32>, !stablehlo.token) {
  %0 = stablehlo.tanh %y : tensor<8x8xf32> loc("n2")
  %1 = stablehlo.after_all %t, %t : !stablehlo.token
  return %0, %1 : tensor<8x8xf32>, !stablehlo.token
}
