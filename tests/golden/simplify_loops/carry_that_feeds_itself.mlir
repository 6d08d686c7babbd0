// A sum that nothing reads feeds only itself: it goes, and so do the ops that compute it. The counter stays.
module {
  func.func public @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.constant dense<10> : tensor<i32>
    %2:3 = stablehlo.while(%arg1 = %0, %arg2 = %arg0, %arg3 = %arg0) : tensor<i32>, tensor<8xf32>, tensor<8xf32>
    cond {
      %3 = stablehlo.compare LT, %arg1, %1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %3 : tensor<i1>
    }
    do {
      %4 = stablehlo.constant dense<1> : tensor<i32>
      %5 = stablehlo.add %arg1, %4 : tensor<i32>
      %6 = stablehlo.tanh %arg2 : tensor<8xf32>
      %7 = stablehlo.exponential %6 : tensor<8xf32>
      %8 = stablehlo.add %arg3, %7 : tensor<8xf32>
      stablehlo.return %5, %6, %8 : tensor<i32>, tensor<8xf32>, tensor<8xf32>
    }
    return %2#1 : tensor<8xf32>
  }
}
// ---- after simplify_loops ----
module {
  func.func public @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.constant dense<10> : tensor<i32>
    %2:2 = stablehlo.while(%arg1 = %0, %arg2 = %arg0) : tensor<i32>, tensor<8xf32>
    cond {
      %3 = stablehlo.compare LT, %arg1, %1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %3 : tensor<i1>
    }
    do {
      %4 = stablehlo.constant dense<1> : tensor<i32>
      %5 = stablehlo.add %arg1, %4 : tensor<i32>
      %6 = stablehlo.tanh %arg2 : tensor<8xf32>
      stablehlo.return %5, %6 : tensor<i32>, tensor<8xf32>
    }
    return %2#1 : tensor<8xf32>
  }
}
