// Nothing propagates to or from a value that is on one device.
sdy.mesh @mesh = <["a"=2, "b"=2]>
sdy.mesh @maximal_mesh_1 = <[], device_ids=[1]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>}, %y: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@maximal_mesh_1, []>}) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = stablehlo.add %x, %y : tensor<8x8xf32> loc("n0")
  %1 = stablehlo.tanh %y : tensor<8x8xf32> loc("n1")
  %2 = stablehlo.tanh %x : tensor<8x8xf32> loc("n2")
  return %0, %2 : tensor<8x8xf32>, tensor<8x8xf32>
}
