// The means of rows are split as the rows of the weight are.
// option shard_update={"data"}
module @jit_factored {
  sdy.mesh @mesh = <["data"=8]>
  func.func public @main(%arg0: tensor<64x32xf32>, %arg1: tensor<64xf32>, %arg2: tensor<256x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) -> (tensor<64x32xf32>, tensor<64xf32>) {
    %0 = stablehlo.dot_general %arg2, %arg0, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x32xf32>) -> tensor<256x32xf32>
    %1 = stablehlo.tanh %0 : tensor<256x32xf32>
    %2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %3 = stablehlo.constant dense<8.192000e+03> : tensor<f32>
    %4 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %5 = stablehlo.divide %4, %3 : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<f32>) -> tensor<256x32xf32>
    %7 = stablehlo.multiply %6, %1 : tensor<256x32xf32>
    %8 = stablehlo.add %7, %7 : tensor<256x32xf32>
    %9 = stablehlo.constant dense<1.000000e+00> : tensor<256x32xf32>
    %10 = stablehlo.add %1, %9 : tensor<256x32xf32>
    %11 = stablehlo.subtract %9, %1 : tensor<256x32xf32>
    %12 = stablehlo.multiply %11, %10 : tensor<256x32xf32>
    %13 = stablehlo.multiply %8, %12 : tensor<256x32xf32>
    %14 = stablehlo.dot_general %arg2, %13, contracting_dims = [0] x [0] : (tensor<256x64xf32>, tensor<256x32xf32>) -> tensor<64x32xf32>
    %15 = stablehlo.constant dense<9.000000e-01> : tensor<64xf32>
    %16 = stablehlo.multiply %15, %arg1 : tensor<64xf32>
    %17 = stablehlo.multiply %14, %14 : tensor<64x32xf32>
    %18 = stablehlo.reduce(%17 init: %2) applies stablehlo.add across dimensions = [1] : (tensor<64x32xf32>, tensor<f32>) -> tensor<64xf32>
    %19 = stablehlo.constant dense<3.200000e+01> : tensor<64xf32>
    %20 = stablehlo.divide %18, %19 : tensor<64xf32>
    %21 = stablehlo.constant dense<1.000000e-01> : tensor<64xf32>
    %22 = stablehlo.multiply %21, %20 : tensor<64xf32>
    %23 = stablehlo.add %16, %22 : tensor<64xf32>
    %24 = stablehlo.constant dense<1.000000e-01> : tensor<64x32xf32>
    %25 = stablehlo.multiply %24, %14 : tensor<64x32xf32>
    %26 = stablehlo.sqrt %23 : tensor<64xf32>
    %27 = stablehlo.broadcast_in_dim %26, dims = [0] : (tensor<64xf32>) -> tensor<64x32xf32>
    %28 = stablehlo.divide %25, %27 : tensor<64x32xf32>
    %29 = stablehlo.subtract %arg0, %28 : tensor<64x32xf32>
    return %29, %23 : tensor<64x32xf32>, tensor<64xf32>
  }
}
// ---- after shard_update ----
module @jit_factored {
  sdy.mesh @mesh = <["data"=8]>
  func.func public @main(%arg0: tensor<64x32xf32>, %arg1: tensor<64xf32>, %arg2: tensor<256x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) -> (tensor<64x32xf32>, tensor<64xf32>) {
    %0 = sdy.sharding_constraint %arg1 <@mesh, [{"data"}]> {cause = "shard_update: state argument 1"} : tensor<64xf32>
    %1 = sdy.sharding_constraint %arg0 <@mesh, [{"data"}, {}]> {cause = "shard_update: state argument 0"} : tensor<64x32xf32>
    %2 = sdy.sharding_constraint %1 <@mesh, [{}, {}]> {cause = "shard_update: gather of argument 0"} : tensor<64x32xf32>
    %3 = stablehlo.dot_general %arg2, %2, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x32xf32>) -> tensor<256x32xf32>
    %4 = stablehlo.tanh %3 : tensor<256x32xf32>
    %5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %6 = stablehlo.constant dense<8.192000e+03> : tensor<f32>
    %7 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %8 = stablehlo.divide %7, %6 : tensor<f32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [] : (tensor<f32>) -> tensor<256x32xf32>
    %10 = stablehlo.multiply %9, %4 : tensor<256x32xf32>
    %11 = stablehlo.add %10, %10 : tensor<256x32xf32>
    %12 = stablehlo.constant dense<1.000000e+00> : tensor<256x32xf32>
    %13 = stablehlo.add %4, %12 : tensor<256x32xf32>
    %14 = stablehlo.subtract %12, %4 : tensor<256x32xf32>
    %15 = stablehlo.multiply %14, %13 : tensor<256x32xf32>
    %16 = stablehlo.multiply %11, %15 : tensor<256x32xf32>
    %17 = stablehlo.dot_general %arg2, %16, contracting_dims = [0] x [0] : (tensor<256x64xf32>, tensor<256x32xf32>) -> tensor<64x32xf32>
    %18 = sdy.sharding_constraint %17 <@mesh, [{"data"}, {}]> {cause = "shard_update: gradient of argument 0"} : tensor<64x32xf32>
    %19 = stablehlo.constant dense<9.000000e-01> : tensor<64xf32>
    %20 = stablehlo.multiply %19, %0 : tensor<64xf32>
    %21 = stablehlo.multiply %18, %18 : tensor<64x32xf32>
    %22 = stablehlo.reduce(%21 init: %5) applies stablehlo.add across dimensions = [1] : (tensor<64x32xf32>, tensor<f32>) -> tensor<64xf32>
    %23 = sdy.sharding_constraint %22 <@mesh, [{"data"}]> {cause = "shard_update: gradient of argument 1"} : tensor<64xf32>
    %24 = stablehlo.constant dense<3.200000e+01> : tensor<64xf32>
    %25 = stablehlo.divide %23, %24 : tensor<64xf32>
    %26 = stablehlo.constant dense<1.000000e-01> : tensor<64xf32>
    %27 = stablehlo.multiply %26, %25 : tensor<64xf32>
    %28 = stablehlo.add %20, %27 : tensor<64xf32>
    %29 = sdy.sharding_constraint %28 <@mesh, [{"data"}]> {cause = "shard_update: update of argument 1"} : tensor<64xf32>
    %30 = stablehlo.constant dense<1.000000e-01> : tensor<64x32xf32>
    %31 = stablehlo.multiply %30, %18 : tensor<64x32xf32>
    %32 = stablehlo.sqrt %28 : tensor<64xf32>
    %33 = stablehlo.broadcast_in_dim %32, dims = [0] : (tensor<64xf32>) -> tensor<64x32xf32>
    %34 = stablehlo.divide %31, %33 : tensor<64x32xf32>
    %35 = stablehlo.subtract %1, %34 : tensor<64x32xf32>
    %36 = sdy.sharding_constraint %35 <@mesh, [{"data"}, {}]> {cause = "shard_update: update of argument 0"} : tensor<64x32xf32>
    return %36, %29 : tensor<64x32xf32>, tensor<64xf32>
  }
}
