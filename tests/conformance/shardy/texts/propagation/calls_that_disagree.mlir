// Each call has its own sharding of the argument and of the result, beside those of the function.
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>}, tensor<8x8xf32>) {
  %0 = func.call @f(%x) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"b"}]>]>} : (tensor<8x8xf32>) -> tensor<8x8xf32> loc("n0")
  %1 = func.call @f(%0) : (tensor<8x8xf32>) -> tensor<8x8xf32> loc("n1")
  %2 = stablehlo.tanh %1 : tensor<8x8xf32> loc("n2")
  return %0, %2 : tensor<8x8xf32>, tensor<8x8xf32>
}
func.func private @f(%y: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) {
  %0 = stablehlo.tanh %y : tensor<8x8xf32> loc("n3")
  return %0 : tensor<8x8xf32>
}
