// 17 rows over 4 devices are blocks of 5; the last device masks its padding with the neutral element of each reduction.
module @jit_uneven_reduce attributes {shardwise.stage = "resharded"} {
  sdy.mesh @mesh = <["data"=4, "model"=2]>
  func.func public @main(%arg0: tensor<17x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) -> (tensor<3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, tensor<3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
    %0 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%arg0 init: %0) applies stablehlo.add across dimensions = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}], unreduced={"data"}>]>} : (tensor<17x3xf32>, tensor<f32>) -> tensor<3xf32>
    %2 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} dense<0xFF800000> : tensor<f32>
    %3 = stablehlo.reduce(%arg0 init: %2) applies stablehlo.maximum across dimensions = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}], unreduced=max{"data"}>]>} : (tensor<17x3xf32>, tensor<f32>) -> tensor<3xf32>
    %4 = sdy.all_reduce {"data"} %1 out_sharding=<@mesh, [{}]> {cause = "reduction in reduce"} : tensor<3xf32>
    %5 = sdy.all_reduce {"data"} %3 out_sharding=<@mesh, [{}]> {cause = "reduction in reduce"} : tensor<3xf32>
    return %4, %5 : tensor<3xf32>, tensor<3xf32>
  }
}
// ---- after localize ----
module @jit_uneven_reduce attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["data"=4, "model"=2]>
  func.func public @main(%arg0: tensor<5x3xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"data"}: 5, {}: 3]> : tensor<17x3xf32>}) -> (tensor<3xf32>, tensor<3xf32>) {
    %0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = "shardwise.axis_index"() <{axes = #sdy<axis_ref_list{"data"}>, mesh = @mesh}> : () -> tensor<i32>
    %2 = stablehlo.constant dense<5> : tensor<i32>
    %3 = stablehlo.multiply %1, %2 : tensor<i32>
    %4 = stablehlo.constant dense<17> : tensor<i32>
    %5 = stablehlo.subtract %4, %3 : tensor<i32>
    %6 = stablehlo.iota dim = 0 : tensor<5xi32>
    %7 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<i32>) -> tensor<5xi32>
    %8 = stablehlo.compare LT, %6, %7 : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0] : (tensor<5xi1>) -> tensor<5x3xi1>
    %10 = stablehlo.constant dense<0.000000e+00> : tensor<5x3xf32>
    %11 = stablehlo.select %9, %arg0, %10 : tensor<5x3xi1>, tensor<5x3xf32>
    %12 = stablehlo.reduce(%11 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<5x3xf32>, tensor<f32>) -> tensor<3xf32>
    %13 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %14 = stablehlo.broadcast_in_dim %8, dims = [0] : (tensor<5xi1>) -> tensor<5x3xi1>
    %15 = stablehlo.constant dense<0xFF800000> : tensor<5x3xf32>
    %16 = stablehlo.select %14, %arg0, %15 : tensor<5x3xi1>, tensor<5x3xf32>
    %17 = stablehlo.reduce(%16 init: %13) applies stablehlo.maximum across dimensions = [0] : (tensor<5x3xf32>, tensor<f32>) -> tensor<3xf32>
    %18 = "shardwise.all_reduce"(%12) <{axes = #sdy<axis_ref_list{"data"}>, mesh = @mesh, reducer = "sum", cause = "reduction in reduce"}> : (tensor<3xf32>) -> tensor<3xf32>
    %19 = "shardwise.all_reduce"(%17) <{axes = #sdy<axis_ref_list{"data"}>, mesh = @mesh, reducer = "max", cause = "reduction in reduce"}> : (tensor<3xf32>) -> tensor<3xf32>
    return %18, %19 : tensor<3xf32>, tensor<3xf32>
  }
}
