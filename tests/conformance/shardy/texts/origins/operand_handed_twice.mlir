// passes: sdy-aggressive-propagate
// What is said of the second argument reaches the operand after the first argument had its turn, the only one.
module {
  sdy.mesh @mesh = <["a"=2, "b"=5]>
  func.func @main(%x: tensor<10xf32>) -> (tensor<10xf32>, tensor<10xf32>) {
    %0:2 = sdy.manual_computation(%x, %x) in_shardings=[<@mesh, [{?}]>, <@mesh, [{"a", ?}]>]
        out_shardings=[<@mesh, [{?}]>, <@mesh, [{?}]>] manual_axes={"b"} (%y: tensor<10xf32>, %z: tensor<10xf32>) {
      sdy.return %y, %z : tensor<10xf32>, tensor<10xf32>
    } : (tensor<10xf32>, tensor<10xf32>) -> (tensor<10xf32>, tensor<10xf32>)
    return %0#0, %0#1 : tensor<10xf32>, tensor<10xf32>
  }
}
