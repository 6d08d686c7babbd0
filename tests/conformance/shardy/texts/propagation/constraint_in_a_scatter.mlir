// A constraint on a scalar of a combiner changes nothing.
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>}, %i: tensor<1xi32>, %u: tensor<8xf32>) -> tensor<8x8xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %r = sdy.sharding_constraint %q <@mesh, []> : tensor<f32>
    %s = stablehlo.add %p, %r : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<8x8xf32>, tensor<1xi32>, tensor<8xf32>) -> tensor<8x8xf32> loc("n0")
  %1 = stablehlo.tanh %0 : tensor<8x8xf32> loc("n1")
  return %1 : tensor<8x8xf32>
}
