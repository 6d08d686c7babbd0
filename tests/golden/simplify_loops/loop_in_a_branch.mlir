// The loop in the branch reads %arg0 instead of a carry that never changes. Its effect keeps %arg2, which nothing else reads.
module {
  func.func @main(%arg0: tensor<f32>) -> tensor<i32> {
    %0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.constant dense<1> : tensor<i32>
    %2 = stablehlo.constant dense<3> : tensor<i32>
    %3:2 = stablehlo.while(%arg1 = %0, %arg2 = %arg0) : tensor<i32>, tensor<f32>
    cond {
      %4 = stablehlo.compare LT, %arg1, %2 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %4 : tensor<i1>
    }
    do {
      %5 = stablehlo.compare EQ, %arg1, %1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %6 = "stablehlo.if"(%5) ({
        %7:3 = stablehlo.while(%arg3 = %0, %arg4 = %arg0, %arg5 = %arg0) : tensor<i32>, tensor<f32>, tensor<f32>
        cond {
          %8 = stablehlo.compare LT, %arg3, %1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %8 : tensor<i1>
        }
        do {
          %9 = stablehlo.custom_call @sink(%arg2) {has_side_effect = true} : (tensor<f32>) -> tensor<f32>
          %10 = stablehlo.add %arg3, %1 : tensor<i32>
          %11 = stablehlo.add %arg4, %arg5 : tensor<f32>
          stablehlo.return %10, %11, %arg5 : tensor<i32>, tensor<f32>, tensor<f32>
        }
        stablehlo.return %7#1 : tensor<f32>
      }, {
        stablehlo.return %arg0 : tensor<f32>
      }) : (tensor<i1>) -> tensor<f32>
      %12 = stablehlo.multiply %arg2, %arg2 : tensor<f32>
      %13 = stablehlo.add %arg1, %1 : tensor<i32>
      stablehlo.return %13, %12 : tensor<i32>, tensor<f32>
    }
    return %3#0 : tensor<i32>
  }
}
// ---- after simplify_loops ----
module {
  func.func @main(%arg0: tensor<f32>) -> tensor<i32> {
    %0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.constant dense<1> : tensor<i32>
    %2 = stablehlo.constant dense<3> : tensor<i32>
    %3:2 = stablehlo.while(%arg1 = %0, %arg2 = %arg0) : tensor<i32>, tensor<f32>
    cond {
      %4 = stablehlo.compare LT, %arg1, %2 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %4 : tensor<i1>
    }
    do {
      %5 = stablehlo.compare EQ, %arg1, %1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %6 = "stablehlo.if"(%5) ({
        %7:2 = stablehlo.while(%arg3 = %0, %arg4 = %arg0) : tensor<i32>, tensor<f32>
        cond {
          %8 = stablehlo.compare LT, %arg3, %1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %8 : tensor<i1>
        }
        do {
          %9 = stablehlo.custom_call @sink(%arg2) {has_side_effect = true} : (tensor<f32>) -> tensor<f32>
          %10 = stablehlo.add %arg3, %1 : tensor<i32>
          %11 = stablehlo.add %arg4, %arg0 : tensor<f32>
          stablehlo.return %10, %11 : tensor<i32>, tensor<f32>
        }
        stablehlo.return %7#1 : tensor<f32>
      }, {
        stablehlo.return %arg0 : tensor<f32>
      }) : (tensor<i1>) -> tensor<f32>
      %12 = stablehlo.multiply %arg2, %arg2 : tensor<f32>
      %13 = stablehlo.add %arg1, %1 : tensor<i32>
      stablehlo.return %13, %12 : tensor<i32>, tensor<f32>
    }
    return %3#0 : tensor<i32>
  }
}
