// A product of the state is a part of the update: it stays as it is.
// option shard_update={"data"}
module @jit_orthogonal {
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
    %17 = stablehlo.dot_general %16, %16, contracting_dims = [0] x [0] : (tensor<64x32xf32>, tensor<64x32xf32>) -> tensor<32x32xf32>
    %18 = stablehlo.dot_general %16, %17, contracting_dims = [1] x [0] : (tensor<64x32xf32>, tensor<32x32xf32>) -> tensor<64x32xf32>
    %19 = stablehlo.constant dense<1.000000e-01> : tensor<64x32xf32>
    %20 = stablehlo.multiply %19, %18 : tensor<64x32xf32>
    %21 = stablehlo.subtract %arg0, %20 : tensor<64x32xf32>
    return %21, %16 : tensor<64x32xf32>, tensor<64x32xf32>
  }
}
// ---- after shard_update ----
module @jit_orthogonal {
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
    %17 = stablehlo.dot_general %16, %16, contracting_dims = [0] x [0] : (tensor<64x32xf32>, tensor<64x32xf32>) -> tensor<32x32xf32>
    %18 = stablehlo.dot_general %16, %17, contracting_dims = [1] x [0] : (tensor<64x32xf32>, tensor<32x32xf32>) -> tensor<64x32xf32>
    %19 = stablehlo.constant dense<1.000000e-01> : tensor<64x32xf32>
    %20 = stablehlo.multiply %19, %18 : tensor<64x32xf32>
    %21 = stablehlo.subtract %arg0, %20 : tensor<64x32xf32>
    return %21, %16 : tensor<64x32xf32>, tensor<64x32xf32>
  }
}
