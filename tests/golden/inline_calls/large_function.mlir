// A large function that is called twice stays; a small one, and one that is called once, are inlined.
module {
  sdy.mesh @mesh = <["a"=2, "b"=3]>
  func.func public @main(%arg0: tensor<5x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}, %arg1: tensor<8x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"b"}]>}, %arg2: tensor<12x8xf32>) -> (tensor<5x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
    %0 = func.call @large(%arg0, %arg1, %arg2) : (tensor<5x8xf32>, tensor<8x12xf32>, tensor<12x8xf32>) -> tensor<5x8xf32>
    %1 = func.call @large(%0, %arg1, %arg2) : (tensor<5x8xf32>, tensor<8x12xf32>, tensor<12x8xf32>) -> tensor<5x8xf32>
    %2 = func.call @small(%1, %arg1, %arg2) : (tensor<5x8xf32>, tensor<8x12xf32>, tensor<12x8xf32>) -> tensor<5x8xf32>
    %3 = func.call @once(%2, %arg1, %arg2) : (tensor<5x8xf32>, tensor<8x12xf32>, tensor<12x8xf32>) -> tensor<5x8xf32>
    %4 = func.call @small(%3, %arg1, %arg2) : (tensor<5x8xf32>, tensor<8x12xf32>, tensor<12x8xf32>) -> tensor<5x8xf32>
    return %4 : tensor<5x8xf32>
  }
  func.func private @large(%arg0: tensor<5x8xf32>, %arg1: tensor<8x12xf32>, %arg2: tensor<12x8xf32>) -> tensor<5x8xf32> {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<5x8xf32>, tensor<8x12xf32>) -> tensor<5x12xf32>
    %1 = stablehlo.tanh %0 : tensor<5x12xf32>
    %2 = stablehlo.tanh %1 : tensor<5x12xf32>
    %3 = stablehlo.tanh %2 : tensor<5x12xf32>
    %4 = stablehlo.tanh %3 : tensor<5x12xf32>
    %5 = stablehlo.tanh %4 : tensor<5x12xf32>
    %6 = stablehlo.tanh %5 : tensor<5x12xf32>
    %7 = stablehlo.tanh %6 : tensor<5x12xf32>
    %8 = stablehlo.tanh %7 : tensor<5x12xf32>
    %9 = stablehlo.tanh %8 : tensor<5x12xf32>
    %10 = stablehlo.tanh %9 : tensor<5x12xf32>
    %11 = stablehlo.dot_general %10, %arg2, contracting_dims = [1] x [0] : (tensor<5x12xf32>, tensor<12x8xf32>) -> tensor<5x8xf32>
    %12 = stablehlo.add %arg0, %11 : tensor<5x8xf32>
    return %12 : tensor<5x8xf32>
  }
  func.func private @small(%arg0: tensor<5x8xf32>, %arg1: tensor<8x12xf32>, %arg2: tensor<12x8xf32>) -> tensor<5x8xf32> {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<5x8xf32>, tensor<8x12xf32>) -> tensor<5x12xf32>
    %1 = stablehlo.tanh %0 : tensor<5x12xf32>
    %2 = stablehlo.dot_general %1, %arg2, contracting_dims = [1] x [0] : (tensor<5x12xf32>, tensor<12x8xf32>) -> tensor<5x8xf32>
    %3 = stablehlo.add %arg0, %2 : tensor<5x8xf32>
    return %3 : tensor<5x8xf32>
  }
  func.func private @once(%arg0: tensor<5x8xf32>, %arg1: tensor<8x12xf32>, %arg2: tensor<12x8xf32>) -> tensor<5x8xf32> {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<5x8xf32>, tensor<8x12xf32>) -> tensor<5x12xf32>
    %1 = stablehlo.tanh %0 : tensor<5x12xf32>
    %2 = stablehlo.tanh %1 : tensor<5x12xf32>
    %3 = stablehlo.tanh %2 : tensor<5x12xf32>
    %4 = stablehlo.tanh %3 : tensor<5x12xf32>
    %5 = stablehlo.tanh %4 : tensor<5x12xf32>
    %6 = stablehlo.tanh %5 : tensor<5x12xf32>
    %7 = stablehlo.tanh %6 : tensor<5x12xf32>
    %8 = stablehlo.tanh %7 : tensor<5x12xf32>
    %9 = stablehlo.tanh %8 : tensor<5x12xf32>
    %10 = stablehlo.tanh %9 : tensor<5x12xf32>
    %11 = stablehlo.dot_general %10, %arg2, contracting_dims = [1] x [0] : (tensor<5x12xf32>, tensor<12x8xf32>) -> tensor<5x8xf32>
    %12 = stablehlo.add %arg0, %11 : tensor<5x8xf32>
    return %12 : tensor<5x8xf32>
  }
}
// ---- after inline_calls ----
module {
  sdy.mesh @mesh = <["a"=2, "b"=3]>
  func.func public @main(%arg0: tensor<5x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}, %arg1: tensor<8x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"b"}]>}, %arg2: tensor<12x8xf32>) -> (tensor<5x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
    %0 = func.call @large(%arg0, %arg1, %arg2) : (tensor<5x8xf32>, tensor<8x12xf32>, tensor<12x8xf32>) -> tensor<5x8xf32>
    %1 = func.call @large(%0, %arg1, %arg2) : (tensor<5x8xf32>, tensor<8x12xf32>, tensor<12x8xf32>) -> tensor<5x8xf32>
    %2 = stablehlo.dot_general %1, %arg1, contracting_dims = [1] x [0] : (tensor<5x8xf32>, tensor<8x12xf32>) -> tensor<5x12xf32>
    %3 = stablehlo.tanh %2 : tensor<5x12xf32>
    %4 = stablehlo.dot_general %3, %arg2, contracting_dims = [1] x [0] : (tensor<5x12xf32>, tensor<12x8xf32>) -> tensor<5x8xf32>
    %5 = stablehlo.add %1, %4 : tensor<5x8xf32>
    %6 = stablehlo.dot_general %5, %arg1, contracting_dims = [1] x [0] : (tensor<5x8xf32>, tensor<8x12xf32>) -> tensor<5x12xf32>
    %7 = stablehlo.tanh %6 : tensor<5x12xf32>
    %8 = stablehlo.tanh %7 : tensor<5x12xf32>
    %9 = stablehlo.tanh %8 : tensor<5x12xf32>
    %10 = stablehlo.tanh %9 : tensor<5x12xf32>
    %11 = stablehlo.tanh %10 : tensor<5x12xf32>
    %12 = stablehlo.tanh %11 : tensor<5x12xf32>
    %13 = stablehlo.tanh %12 : tensor<5x12xf32>
    %14 = stablehlo.tanh %13 : tensor<5x12xf32>
    %15 = stablehlo.tanh %14 : tensor<5x12xf32>
    %16 = stablehlo.tanh %15 : tensor<5x12xf32>
    %17 = stablehlo.dot_general %16, %arg2, contracting_dims = [1] x [0] : (tensor<5x12xf32>, tensor<12x8xf32>) -> tensor<5x8xf32>
    %18 = stablehlo.add %5, %17 : tensor<5x8xf32>
    %19 = stablehlo.dot_general %18, %arg1, contracting_dims = [1] x [0] : (tensor<5x8xf32>, tensor<8x12xf32>) -> tensor<5x12xf32>
    %20 = stablehlo.tanh %19 : tensor<5x12xf32>
    %21 = stablehlo.dot_general %20, %arg2, contracting_dims = [1] x [0] : (tensor<5x12xf32>, tensor<12x8xf32>) -> tensor<5x8xf32>
    %22 = stablehlo.add %18, %21 : tensor<5x8xf32>
    return %22 : tensor<5x8xf32>
  }
  func.func private @large(%arg0: tensor<5x8xf32>, %arg1: tensor<8x12xf32>, %arg2: tensor<12x8xf32>) -> tensor<5x8xf32> {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<5x8xf32>, tensor<8x12xf32>) -> tensor<5x12xf32>
    %1 = stablehlo.tanh %0 : tensor<5x12xf32>
    %2 = stablehlo.tanh %1 : tensor<5x12xf32>
    %3 = stablehlo.tanh %2 : tensor<5x12xf32>
    %4 = stablehlo.tanh %3 : tensor<5x12xf32>
    %5 = stablehlo.tanh %4 : tensor<5x12xf32>
    %6 = stablehlo.tanh %5 : tensor<5x12xf32>
    %7 = stablehlo.tanh %6 : tensor<5x12xf32>
    %8 = stablehlo.tanh %7 : tensor<5x12xf32>
    %9 = stablehlo.tanh %8 : tensor<5x12xf32>
    %10 = stablehlo.tanh %9 : tensor<5x12xf32>
    %11 = stablehlo.dot_general %10, %arg2, contracting_dims = [1] x [0] : (tensor<5x12xf32>, tensor<12x8xf32>) -> tensor<5x8xf32>
    %12 = stablehlo.add %arg0, %11 : tensor<5x8xf32>
    return %12 : tensor<5x8xf32>
  }
}
