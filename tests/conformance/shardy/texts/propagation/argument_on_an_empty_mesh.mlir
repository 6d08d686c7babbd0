// An argument on the empty mesh takes the first mesh that it meets; a closed dim stays closed.
sdy.mesh @mesh = <["a"=2, "b"=2]>
sdy.mesh @empty_mesh = <[]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b", ?}]>}, %y: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@empty_mesh, [{}, {?}]>}) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = stablehlo.add %x, %y : tensor<8x8xf32> loc("n0")
  %1 = stablehlo.tanh %y : tensor<8x8xf32> loc("n1")
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>
}
