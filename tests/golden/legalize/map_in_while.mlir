// Regions of loops are legalized, too; a map becomes the ops of its region on whole tensors.
module @map_in_while {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<i32>, %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %arg2: tensor<f32>) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
    %0:2 = stablehlo.while(%arg3 = %arg0, %arg4 = %arg1) : tensor<i32>, tensor<8xf32> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>, <@mesh, [{"x"}]>]>}
    cond {
      %1 = stablehlo.constant dense<0> : tensor<i32>
      %2 = stablehlo.compare GT, %arg3, %1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    }
    do {
      %3 = stablehlo.constant dense<-1> : tensor<i32>
      %4 = stablehlo.add %arg3, %3 : tensor<i32>
      %5 = "stablehlo.map"(%arg4) <{dimensions = array<i64: 0>}> ({
      ^bb0(%arg5: tensor<f32>):
        %6 = stablehlo.multiply %arg5, %arg2 : tensor<f32>
        stablehlo.return %6 : tensor<f32>
      }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>) -> tensor<8xf32>
      stablehlo.return %4, %5 : tensor<i32>, tensor<8xf32>
    }
    return %0#1 : tensor<8xf32>
  }
}
// ---- after legalize ----
module @map_in_while {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<i32>, %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %arg2: tensor<f32>) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
    %0:2 = stablehlo.while(%arg3 = %arg0, %arg4 = %arg1) : tensor<i32>, tensor<8xf32> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>, <@mesh, [{"x"}]>]>}
    cond {
      %1 = stablehlo.constant dense<0> : tensor<i32>
      %2 = stablehlo.compare GT, %arg3, %1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    }
    do {
      %3 = stablehlo.constant dense<-1> : tensor<i32>
      %4 = stablehlo.add %arg3, %3 : tensor<i32>
      %5 = stablehlo.broadcast_in_dim %arg2, dims = [] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<f32>) -> tensor<8xf32>
      %6 = stablehlo.multiply %arg4, %5 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
      stablehlo.return %4, %6 : tensor<i32>, tensor<8xf32>
    }
    return %0#1 : tensor<8xf32>
  }
}
