// A barrier stands between the two runs of a checkpoint: the mask is made again behind it, though it depends on nothing.
module @jit_masks_of_a_checkpoint {
  func.func public @main(%arg0: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
    %0 = stablehlo.iota dim = 0 : tensor<4x4xi32>
    %1 = stablehlo.iota dim = 1 : tensor<4x4xi32>
    %2 = stablehlo.compare GE, %0, %1, SIGNED : (tensor<4x4xi32>, tensor<4x4xi32>) -> tensor<4x4xi1>
    %3 = stablehlo.constant dense<0.000000e+00> : tensor<4x4xf32>
    %4 = stablehlo.select %2, %arg0, %3 : tensor<4x4xi1>, tensor<4x4xf32>
    %5 = stablehlo.optimization_barrier %arg0 : tensor<4x4xf32>
    %6 = stablehlo.iota dim = 0 : tensor<4x4xi32>
    %7 = stablehlo.iota dim = 1 : tensor<4x4xi32>
    %8 = stablehlo.compare GE, %6, %7, SIGNED : (tensor<4x4xi32>, tensor<4x4xi32>) -> tensor<4x4xi1>
    %9 = stablehlo.constant dense<0.000000e+00> : tensor<4x4xf32>
    %10 = stablehlo.select %8, %5, %9 : tensor<4x4xi1>, tensor<4x4xf32>
    %11 = stablehlo.compare GE, %6, %7, SIGNED : (tensor<4x4xi32>, tensor<4x4xi32>) -> tensor<4x4xi1>
    %12 = stablehlo.select %11, %10, %9 : tensor<4x4xi1>, tensor<4x4xf32>
    return %4, %12 : tensor<4x4xf32>, tensor<4x4xf32>
  }
}
// ---- after simplify ----
module @jit_masks_of_a_checkpoint {
  func.func public @main(%arg0: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
    %0 = stablehlo.iota dim = 0 : tensor<4x4xi32>
    %1 = stablehlo.iota dim = 1 : tensor<4x4xi32>
    %2 = stablehlo.compare GE, %0, %1, SIGNED : (tensor<4x4xi32>, tensor<4x4xi32>) -> tensor<4x4xi1>
    %3 = stablehlo.constant dense<0.000000e+00> : tensor<4x4xf32>
    %4 = stablehlo.select %2, %arg0, %3 : tensor<4x4xi1>, tensor<4x4xf32>
    %5 = stablehlo.optimization_barrier %arg0 : tensor<4x4xf32>
    %6 = stablehlo.iota dim = 0 : tensor<4x4xi32>
    %7 = stablehlo.iota dim = 1 : tensor<4x4xi32>
    %8 = stablehlo.compare GE, %6, %7, SIGNED : (tensor<4x4xi32>, tensor<4x4xi32>) -> tensor<4x4xi1>
    %9 = stablehlo.select %8, %5, %3 : tensor<4x4xi1>, tensor<4x4xf32>
    %10 = stablehlo.select %8, %9, %3 : tensor<4x4xi1>, tensor<4x4xf32>
    return %4, %10 : tensor<4x4xf32>, tensor<4x4xf32>
  }
}
