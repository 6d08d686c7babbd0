// The weight and its momentum are split; the gradient comes scattered, and the forward pass has the whole weight.
// option shard_update={"data"}
module @jit_momentum {
  sdy.mesh @mesh = <["data"=8]>
  func.func public @main(%arg0: tensor<64x32xf32>, %arg1: tensor<64x32xf32>, %arg2: tensor<256x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) -> (tensor<64x32xf32>, tensor<64x32xf32>) {
    %0 = stablehlo.constant dense<9.000000e-01> : tensor<64x32xf32>
    %1 = stablehlo.multiply %0, %arg1 : tensor<64x32xf32>
    %2 = stablehlo.dot_general %arg2, %arg0, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x32xf32>) -> tensor<256x32xf32>
    %3 = stablehlo.tanh %2 : tensor<256x32xf32>
    %4 = stablehlo.constant dense<8.192000e+03> : tensor<f32>
    %5 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %6 = stablehlo.divide %5, %4 : tensor<f32>
    %7 = stablehlo.broadcast_in_dim %6, dims = [] : (tensor<f32>) -> tensor<256x32xf32>
    %8 = stablehlo.multiply %7, %3 : tensor<256x32xf32>
    %9 = stablehlo.add %8, %8 : tensor<256x32xf32>
    %10 = stablehlo.constant dense<1.000000e+00> : tensor<256x32xf32>
    %11 = stablehlo.add %3, %10 : tensor<256x32xf32>
    %12 = stablehlo.subtract %10, %3 : tensor<256x32xf32>
    %13 = stablehlo.multiply %12, %11 : tensor<256x32xf32>
    %14 = stablehlo.multiply %9, %13 : tensor<256x32xf32>
    %15 = stablehlo.dot_general %arg2, %14, contracting_dims = [0] x [0] : (tensor<256x64xf32>, tensor<256x32xf32>) -> tensor<64x32xf32>
    %16 = stablehlo.add %1, %15 : tensor<64x32xf32>
    %17 = stablehlo.constant dense<1.000000e-01> : tensor<64x32xf32>
    %18 = stablehlo.multiply %17, %16 : tensor<64x32xf32>
    %19 = stablehlo.subtract %arg0, %18 : tensor<64x32xf32>
    return %19, %16 : tensor<64x32xf32>, tensor<64x32xf32>
  }
}
// ---- after shard_update ----
module @jit_momentum {
  sdy.mesh @mesh = <["data"=8]>
  func.func public @main(%arg0: tensor<64x32xf32>, %arg1: tensor<64x32xf32>, %arg2: tensor<256x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) -> (tensor<64x32xf32>, tensor<64x32xf32>) {
    %0 = sdy.sharding_constraint %arg1 <@mesh, [{"data"}, {}]> {cause = "shard_update: state argument 1"} : tensor<64x32xf32>
    %1 = sdy.sharding_constraint %arg0 <@mesh, [{"data"}, {}]> {cause = "shard_update: state argument 0"} : tensor<64x32xf32>
    %2 = sdy.sharding_constraint %1 <@mesh, [{}, {}]> {cause = "shard_update: gather of argument 0"} : tensor<64x32xf32>
    %3 = stablehlo.constant dense<9.000000e-01> : tensor<64x32xf32>
    %4 = stablehlo.multiply %3, %0 : tensor<64x32xf32>
    %5 = stablehlo.dot_general %arg2, %2, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x32xf32>) -> tensor<256x32xf32>
    %6 = stablehlo.tanh %5 : tensor<256x32xf32>
    %7 = stablehlo.constant dense<8.192000e+03> : tensor<f32>
    %8 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %9 = stablehlo.divide %8, %7 : tensor<f32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<f32>) -> tensor<256x32xf32>
    %11 = stablehlo.multiply %10, %6 : tensor<256x32xf32>
    %12 = stablehlo.add %11, %11 : tensor<256x32xf32>
    %13 = stablehlo.constant dense<1.000000e+00> : tensor<256x32xf32>
    %14 = stablehlo.add %6, %13 : tensor<256x32xf32>
    %15 = stablehlo.subtract %13, %6 : tensor<256x32xf32>
    %16 = stablehlo.multiply %15, %14 : tensor<256x32xf32>
    %17 = stablehlo.multiply %12, %16 : tensor<256x32xf32>
    %18 = stablehlo.dot_general %arg2, %17, contracting_dims = [0] x [0] : (tensor<256x64xf32>, tensor<256x32xf32>) -> tensor<64x32xf32>
    %19 = sdy.sharding_constraint %18 <@mesh, [{"data"}, {}]> {cause = "shard_update: gradient of argument 0"} : tensor<64x32xf32>
    %20 = stablehlo.add %4, %19 : tensor<64x32xf32>
    %21 = sdy.sharding_constraint %20 <@mesh, [{"data"}, {}]> {cause = "shard_update: update of argument 0"} : tensor<64x32xf32>
    %22 = stablehlo.constant dense<1.000000e-01> : tensor<64x32xf32>
    %23 = stablehlo.multiply %22, %20 : tensor<64x32xf32>
    %24 = stablehlo.subtract %1, %23 : tensor<64x32xf32>
    %25 = sdy.sharding_constraint %24 <@mesh, [{"data"}, {}]> {cause = "shard_update: update of argument 0"} : tensor<64x32xf32>
    return %25, %21 : tensor<64x32xf32>, tensor<64x32xf32>
  }
}
