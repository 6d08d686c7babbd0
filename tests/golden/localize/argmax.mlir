// argmax along 10 columns in blocks of 3: padding never wins; the winners of the shards are exchanged by rows.
module @jit_argmax attributes {shardwise.stage = "resharded"} {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  func.func public @main(%arg0: tensor<16x10xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}) -> (tensor<16xi64> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}) {
    %0 = stablehlo.iota dim = 1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {"x"}]>]>} : tensor<16x10xi32>
    %1 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} dense<0xFF800000> : tensor<f32>
    %2 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} dense<0> : tensor<i32>
    %3:2 = stablehlo.reduce(%arg0 init: %1), (%0 init: %2) across dimensions = [1] {method = "partial results", sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}]>, <@mesh, [{"y"}]>]>} : (tensor<16x10xf32>, tensor<16x10xi32>, tensor<f32>, tensor<i32>) -> (tensor<16xf32>, tensor<16xi32>)
     reducer(%arg1: tensor<f32>, %arg2: tensor<f32>) (%arg3: tensor<i32>, %arg4: tensor<i32>) {
      %4 = stablehlo.compare GT, %arg1, %arg2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %5 = stablehlo.compare NE, %arg1, %arg1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %6 = stablehlo.or %4, %5 : tensor<i1>
      %7 = stablehlo.compare EQ, %arg1, %arg2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %8 = stablehlo.compare LT, %arg3, %arg4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %9 = stablehlo.and %7, %8 : tensor<i1>
      %10 = stablehlo.or %6, %9 : tensor<i1>
      %11 = stablehlo.select %6, %arg1, %arg2 : tensor<i1>, tensor<f32>
      %12 = stablehlo.select %10, %arg3, %arg4 : tensor<i1>, tensor<i32>
      stablehlo.return %11, %12 : tensor<f32>, tensor<i32>
    }
    %13 = stablehlo.convert %3#1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}]>]>} : (tensor<16xi32>) -> tensor<16xi64>
    return %13 : tensor<16xi64>
  }
}
// ---- after localize ----
module @jit_argmax attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  func.func public @main(%arg0: tensor<8x3xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"y"}: 8, {"x"}: 3]> : tensor<16x10xf32>}) -> (tensor<8xi64> {shardwise.placement = #shardwise.placement<@mesh, [{"y"}: 8]>}) {
    %0 = "shardwise.axis_index"() <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh}> : () -> tensor<i32>
    %1 = stablehlo.constant dense<3> : tensor<i32>
    %2 = stablehlo.multiply %0, %1 : tensor<i32>
    %3 = stablehlo.iota dim = 1 : tensor<8x3xi32>
    %4 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i32>) -> tensor<8x3xi32>
    %5 = stablehlo.add %3, %4 : tensor<8x3xi32>
    %6 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %7 = stablehlo.constant dense<0> : tensor<i32>
    %8 = stablehlo.constant dense<10> : tensor<i32>
    %9 = stablehlo.subtract %8, %2 : tensor<i32>
    %10 = stablehlo.iota dim = 0 : tensor<3xi32>
    %11 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<i32>) -> tensor<3xi32>
    %12 = stablehlo.compare LT, %10, %11 : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
    %13 = stablehlo.broadcast_in_dim %12, dims = [1] : (tensor<3xi1>) -> tensor<8x3xi1>
    %14 = stablehlo.constant dense<0xFF800000> : tensor<8x3xf32>
    %15 = stablehlo.select %13, %arg0, %14 : tensor<8x3xi1>, tensor<8x3xf32>
    %16 = stablehlo.broadcast_in_dim %12, dims = [1] : (tensor<3xi1>) -> tensor<8x3xi1>
    %17 = stablehlo.constant dense<2147483647> : tensor<8x3xi32>
    %18 = stablehlo.select %16, %5, %17 : tensor<8x3xi1>, tensor<8x3xi32>
    %19:2 = stablehlo.reduce(%15 init: %6), (%18 init: %7) across dimensions = [1] : (tensor<8x3xf32>, tensor<8x3xi32>, tensor<f32>, tensor<i32>) -> (tensor<8xf32>, tensor<8xi32>)
     reducer(%arg1: tensor<f32>, %arg2: tensor<f32>) (%arg3: tensor<i32>, %arg4: tensor<i32>) {
      %20 = stablehlo.compare GT, %arg1, %arg2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %21 = stablehlo.compare NE, %arg1, %arg1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %22 = stablehlo.or %20, %21 : tensor<i1>
      %23 = stablehlo.compare EQ, %arg1, %arg2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %24 = stablehlo.compare LT, %arg3, %arg4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %25 = stablehlo.and %23, %24 : tensor<i1>
      %26 = stablehlo.or %22, %25 : tensor<i1>
      %27 = stablehlo.select %22, %arg1, %arg2 : tensor<i1>, tensor<f32>
      %28 = stablehlo.select %26, %arg3, %arg4 : tensor<i1>, tensor<i32>
      stablehlo.return %27, %28 : tensor<f32>, tensor<i32>
    }
    %29 = stablehlo.pad %19#0, %6, low = [0], high = [0], interior = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
    %30 = stablehlo.pad %19#1, %7, low = [0], high = [0], interior = [0] : (tensor<8xi32>, tensor<i32>) -> tensor<8xi32>
    %31 = stablehlo.reshape %29 : (tensor<8xf32>) -> tensor<1x8xf32>
    %32 = "shardwise.all_to_all"(%31) <{mesh = @mesh, moves = [{axes = #sdy<axis_ref_list{"x"}>, from_dim = 0 : i64, to_dim = 1 : i64}], cause = "partial results of reduce along dim 1"}> : (tensor<1x8xf32>) -> tensor<4x2xf32>
    %33 = stablehlo.reshape %30 : (tensor<8xi32>) -> tensor<1x8xi32>
    %34 = "shardwise.all_to_all"(%33) <{mesh = @mesh, moves = [{axes = #sdy<axis_ref_list{"x"}>, from_dim = 0 : i64, to_dim = 1 : i64}], cause = "partial results of reduce along dim 1"}> : (tensor<1x8xi32>) -> tensor<4x2xi32>
    %35:2 = stablehlo.reduce(%32 init: %6), (%34 init: %7) across dimensions = [0] : (tensor<4x2xf32>, tensor<4x2xi32>, tensor<f32>, tensor<i32>) -> (tensor<2xf32>, tensor<2xi32>)
     reducer(%arg5: tensor<f32>, %arg6: tensor<f32>) (%arg7: tensor<i32>, %arg8: tensor<i32>) {
      %36 = stablehlo.compare GT, %arg5, %arg6, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %37 = stablehlo.compare NE, %arg5, %arg5, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %38 = stablehlo.or %36, %37 : tensor<i1>
      %39 = stablehlo.compare EQ, %arg5, %arg6, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %40 = stablehlo.compare LT, %arg7, %arg8, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %41 = stablehlo.and %39, %40 : tensor<i1>
      %42 = stablehlo.or %38, %41 : tensor<i1>
      %43 = stablehlo.select %38, %arg5, %arg6 : tensor<i1>, tensor<f32>
      %44 = stablehlo.select %42, %arg7, %arg8 : tensor<i1>, tensor<i32>
      stablehlo.return %43, %44 : tensor<f32>, tensor<i32>
    }
    %45 = "shardwise.all_gather"(%35#0) <{gather = #sdy<list_of_axis_ref_lists[{"x"}]>, mesh = @mesh, cause = "partial results of reduce along dim 1"}> : (tensor<2xf32>) -> tensor<8xf32>
    %46 = stablehlo.slice %45 [0:8] : (tensor<8xf32>) -> tensor<8xf32>
    %47 = "shardwise.all_gather"(%35#1) <{gather = #sdy<list_of_axis_ref_lists[{"x"}]>, mesh = @mesh, cause = "partial results of reduce along dim 1"}> : (tensor<2xi32>) -> tensor<8xi32>
    %48 = stablehlo.slice %47 [0:8] : (tensor<8xi32>) -> tensor<8xi32>
    %49 = stablehlo.convert %48 : (tensor<8xi32>) -> tensor<8xi64>
    return %49 : tensor<8xi64>
  }
}
