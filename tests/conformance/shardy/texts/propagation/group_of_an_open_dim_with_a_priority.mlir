// passes: sdy-op-priority-propagate
sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = sdy.sharding_constraint %y <@mesh, [{?}p2]> : tensor<4xf32>
  sdy.sharding_group %x group_id=1 : tensor<4xf32>
  sdy.sharding_group %0 group_id=1 : tensor<4xf32>
  return %x, %0 : tensor<4xf32>, tensor<4xf32>
}
