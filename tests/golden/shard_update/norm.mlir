// The squares behind the norm are those of a shard; no use of the weight but the products gathers it.
// option shard_update={"data"}
// option gather_dtype=bfloat16
module @jit_norm {
  sdy.mesh @mesh = <["data"=8]>
  func.func public @main(%arg0: tensor<64x32xf32>, %arg1: tensor<256x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) -> tensor<64x32xf32> {
    %0 = stablehlo.dot_general %arg1, %arg0, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x32xf32>) -> tensor<256x32xf32>
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
    %14 = stablehlo.dot_general %arg1, %13, contracting_dims = [0] x [0] : (tensor<256x64xf32>, tensor<256x32xf32>) -> tensor<64x32xf32>
    %15 = stablehlo.multiply %arg0, %arg0 : tensor<64x32xf32>
    %16 = stablehlo.reduce(%15 init: %2) applies stablehlo.add across dimensions = [0, 1] : (tensor<64x32xf32>, tensor<f32>) -> tensor<f32>
    %17 = stablehlo.sqrt %16 : tensor<f32>
    %18 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %19 = stablehlo.multiply %18, %17 : tensor<f32>
    %20 = stablehlo.broadcast_in_dim %19, dims = [] : (tensor<f32>) -> tensor<64x32xf32>
    %21 = stablehlo.multiply %20, %14 : tensor<64x32xf32>
    %22 = stablehlo.subtract %arg0, %21 : tensor<64x32xf32>
    return %22 : tensor<64x32xf32>
  }
}
// ---- after shard_update ----
module @jit_norm {
  sdy.mesh @mesh = <["data"=8]>
  func.func public @main(%arg0: tensor<64x32xf32>, %arg1: tensor<256x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) -> tensor<64x32xf32> {
    %0 = sdy.sharding_constraint %arg0 <@mesh, [{"data"}, {}]> {cause = "shard_update: state argument 0"} : tensor<64x32xf32>
    %1 = stablehlo.convert %0 : (tensor<64x32xf32>) -> tensor<64x32xbf16>
    %2 = sdy.sharding_constraint %1 <@mesh, [{"data"}, {}]> {cause = "shard_update: gather of argument 0"} : tensor<64x32xbf16>
    %3 = sdy.sharding_constraint %2 <@mesh, [{}, {}]> {cause = "shard_update: gather of argument 0"} : tensor<64x32xbf16>
    %4 = stablehlo.convert %3 : (tensor<64x32xbf16>) -> tensor<64x32xf32>
    %5 = stablehlo.dot_general %arg1, %4, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x32xf32>) -> tensor<256x32xf32>
    %6 = stablehlo.tanh %5 : tensor<256x32xf32>
    %7 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %8 = stablehlo.constant dense<8.192000e+03> : tensor<f32>
    %9 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %10 = stablehlo.divide %9, %8 : tensor<f32>
    %11 = stablehlo.broadcast_in_dim %10, dims = [] : (tensor<f32>) -> tensor<256x32xf32>
    %12 = stablehlo.multiply %11, %6 : tensor<256x32xf32>
    %13 = stablehlo.add %12, %12 : tensor<256x32xf32>
    %14 = stablehlo.constant dense<1.000000e+00> : tensor<256x32xf32>
    %15 = stablehlo.add %6, %14 : tensor<256x32xf32>
    %16 = stablehlo.subtract %14, %6 : tensor<256x32xf32>
    %17 = stablehlo.multiply %16, %15 : tensor<256x32xf32>
    %18 = stablehlo.multiply %13, %17 : tensor<256x32xf32>
    %19 = stablehlo.dot_general %arg1, %18, contracting_dims = [0] x [0] : (tensor<256x64xf32>, tensor<256x32xf32>) -> tensor<64x32xf32>
    %20 = sdy.sharding_constraint %19 <@mesh, [{"data"}, {}]> {cause = "shard_update: gradient of argument 0"} : tensor<64x32xf32>
    %21 = stablehlo.multiply %0, %0 : tensor<64x32xf32>
    %22 = stablehlo.reduce(%21 init: %7) applies stablehlo.add across dimensions = [0, 1] : (tensor<64x32xf32>, tensor<f32>) -> tensor<f32>
    %23 = stablehlo.sqrt %22 : tensor<f32>
    %24 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %25 = stablehlo.multiply %24, %23 : tensor<f32>
    %26 = stablehlo.broadcast_in_dim %25, dims = [] : (tensor<f32>) -> tensor<64x32xf32>
    %27 = stablehlo.multiply %26, %20 : tensor<64x32xf32>
    %28 = stablehlo.subtract %0, %27 : tensor<64x32xf32>
    %29 = sdy.sharding_constraint %28 <@mesh, [{"data"}, {}]> {cause = "shard_update: update of argument 0"} : tensor<64x32xf32>
    return %29 : tensor<64x32xf32>
  }
}
