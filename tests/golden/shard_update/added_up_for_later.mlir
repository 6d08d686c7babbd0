// A gradient is added up for a later step: its sum is split, though no weight is updated.
// option shard_update={"data"}
module @jit_add_up {
  sdy.mesh @mesh = <["data"=8]>
  func.func public @main(%arg0: tensor<64x32xf32>, %arg1: tensor<64x32xf32>, %arg2: tensor<256x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) -> (tensor<64x32xf32>, tensor<64x32xf32>) {
    %0 = stablehlo.dot_general %arg2, %arg0, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x32xf32>) -> tensor<256x32xf32>
    %1 = stablehlo.cosine %0 : tensor<256x32xf32>
    %2 = stablehlo.dot_general %arg2, %1, contracting_dims = [0] x [0] : (tensor<256x64xf32>, tensor<256x32xf32>) -> tensor<64x32xf32>
    %3 = stablehlo.add %arg1, %2 : tensor<64x32xf32>
    return %arg0, %3 : tensor<64x32xf32>, tensor<64x32xf32>
  }
}
// ---- after shard_update ----
module @jit_add_up {
  sdy.mesh @mesh = <["data"=8]>
  func.func public @main(%arg0: tensor<64x32xf32>, %arg1: tensor<64x32xf32>, %arg2: tensor<256x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) -> (tensor<64x32xf32>, tensor<64x32xf32>) {
    %0 = sdy.sharding_constraint %arg1 <@mesh, [{"data"}, {}]> {cause = "shard_update: state argument 1"} : tensor<64x32xf32>
    %1 = stablehlo.dot_general %arg2, %arg0, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x32xf32>) -> tensor<256x32xf32>
    %2 = stablehlo.cosine %1 : tensor<256x32xf32>
    %3 = stablehlo.dot_general %arg2, %2, contracting_dims = [0] x [0] : (tensor<256x64xf32>, tensor<256x32xf32>) -> tensor<64x32xf32>
    %4 = sdy.sharding_constraint %3 <@mesh, [{"data"}, {}]> {cause = "shard_update: gradient of argument 1"} : tensor<64x32xf32>
    %5 = stablehlo.add %0, %4 : tensor<64x32xf32>
    %6 = sdy.sharding_constraint %5 <@mesh, [{"data"}, {}]> {cause = "shard_update: update of argument 1"} : tensor<64x32xf32>
    return %arg0, %6 : tensor<64x32xf32>, tensor<64x32xf32>
  }
}
