// The inner loop returns the weight unchanged, and so does the outer one then: both read it from main.
module {
  func.func public @main(%arg0: tensor<8x4xf32>, %arg1: tensor<4x4xf32>) -> tensor<8x4xf32> {
    %0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.constant dense<10> : tensor<i32>
    %2 = stablehlo.constant dense<1> : tensor<i32>
    %3:3 = stablehlo.while(%arg2 = %0, %arg3 = %arg0, %arg4 = %arg1) : tensor<i32>, tensor<8x4xf32>, tensor<4x4xf32>
    cond {
      %4 = stablehlo.compare LT, %arg2, %1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %4 : tensor<i1>
    }
    do {
      %5 = stablehlo.add %arg2, %2 : tensor<i32>
      %6:3 = stablehlo.while(%arg5 = %0, %arg6 = %arg3, %arg7 = %arg4) : tensor<i32>, tensor<8x4xf32>, tensor<4x4xf32>
      cond {
        %7 = stablehlo.compare LT, %arg5, %arg2 : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %7 : tensor<i1>
      }
      do {
        %8 = stablehlo.add %arg5, %2 : tensor<i32>
        %9 = stablehlo.dot_general %arg6, %arg7, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
        stablehlo.return %8, %9, %arg7 : tensor<i32>, tensor<8x4xf32>, tensor<4x4xf32>
      }
      stablehlo.return %5, %6#1, %6#2 : tensor<i32>, tensor<8x4xf32>, tensor<4x4xf32>
    }
    return %3#1 : tensor<8x4xf32>
  }
}
// ---- after simplify_loops ----
module {
  func.func public @main(%arg0: tensor<8x4xf32>, %arg1: tensor<4x4xf32>) -> tensor<8x4xf32> {
    %0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.constant dense<10> : tensor<i32>
    %2 = stablehlo.constant dense<1> : tensor<i32>
    %3:2 = stablehlo.while(%arg2 = %0, %arg3 = %arg0) : tensor<i32>, tensor<8x4xf32>
    cond {
      %4 = stablehlo.compare LT, %arg2, %1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %4 : tensor<i1>
    }
    do {
      %5 = stablehlo.add %arg2, %2 : tensor<i32>
      %6:2 = stablehlo.while(%arg4 = %0, %arg5 = %arg3) : tensor<i32>, tensor<8x4xf32>
      cond {
        %7 = stablehlo.compare LT, %arg4, %arg2 : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %7 : tensor<i1>
      }
      do {
        %8 = stablehlo.add %arg4, %2 : tensor<i32>
        %9 = stablehlo.dot_general %arg5, %arg1, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
        stablehlo.return %8, %9 : tensor<i32>, tensor<8x4xf32>
      }
      stablehlo.return %5, %6#1 : tensor<i32>, tensor<8x4xf32>
    }
    return %3#1 : tensor<8x4xf32>
  }
}
