// Both weights arrive split, and in_shardings names the model's layouts: whole. The trained one keeps the layout of its
// array, and the forward pass gathers it; the frozen one is gathered where it arrives.
// option shard_update={"data"}
module @jit_arrivals {
  sdy.mesh @mesh = <["data"=8]>
  func.func public @main(%arg0: tensor<64x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"data"}]>}, %arg1: tensor<32x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}, %arg2: tensor<256x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) -> tensor<64x32xf32> {
    %0 = sdy.sharding_constraint %arg0 <@mesh, [{}, {}]> {cause = "in_shardings of w"} : tensor<64x32xf32>
    %1 = sdy.sharding_constraint %arg1 <@mesh, [{}, {}]> {cause = "in_shardings of frozen"} : tensor<32x32xf32>
    %2 = stablehlo.dot_general %arg2, %0, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x32xf32>) -> tensor<256x32xf32>
    %3 = stablehlo.dot_general %2, %1, contracting_dims = [1] x [0] : (tensor<256x32xf32>, tensor<32x32xf32>) -> tensor<256x32xf32>
    %4 = stablehlo.dot_general %arg2, %3, contracting_dims = [0] x [0] : (tensor<256x64xf32>, tensor<256x32xf32>) -> tensor<64x32xf32>
    %5 = stablehlo.subtract %0, %4 : tensor<64x32xf32>
    return %5 : tensor<64x32xf32>
  }
}
// ---- after shard_update ----
module @jit_arrivals {
  sdy.mesh @mesh = <["data"=8]>
  func.func public @main(%arg0: tensor<64x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"data"}]>}, %arg1: tensor<32x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}, %arg2: tensor<256x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) -> tensor<64x32xf32> {
    %0 = sdy.sharding_constraint %arg1 <@mesh, [{}, {}]> {cause = "in_shardings of frozen"} : tensor<32x32xf32>
    %1 = sdy.sharding_constraint %arg0 <@mesh, [{}, {"data"}]> {cause = "shard_update: state argument 0"} : tensor<64x32xf32>
    %2 = sdy.sharding_constraint %1 <@mesh, [{}, {}]> {cause = "shard_update: gather of argument 0"} : tensor<64x32xf32>
    %3 = stablehlo.dot_general %arg2, %2, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x32xf32>) -> tensor<256x32xf32>
    %4 = stablehlo.dot_general %3, %0, contracting_dims = [1] x [0] : (tensor<256x32xf32>, tensor<32x32xf32>) -> tensor<256x32xf32>
    %5 = stablehlo.dot_general %arg2, %4, contracting_dims = [0] x [0] : (tensor<256x64xf32>, tensor<256x32xf32>) -> tensor<64x32xf32>
    %6 = sdy.sharding_constraint %5 <@mesh, [{}, {"data"}]> {cause = "shard_update: gradient of argument 0"} : tensor<64x32xf32>
    %7 = stablehlo.subtract %1, %6 : tensor<64x32xf32>
    %8 = sdy.sharding_constraint %7 <@mesh, [{}, {"data"}]> {cause = "shard_update: update of argument 0"} : tensor<64x32xf32>
    return %8 : tensor<64x32xf32>
  }
}
