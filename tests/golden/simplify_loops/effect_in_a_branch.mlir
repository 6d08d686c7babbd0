// The branch with the effect runs if %arg2 is 0: that carry stays, although its result is not used. %arg4 goes.
module {
  func.func @main(%arg0: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.constant dense<1> : tensor<i32>
    %2 = stablehlo.constant dense<4> : tensor<i32>
    %3:4 = stablehlo.while(%arg1 = %0, %arg2 = %0, %arg3 = %arg0, %arg4 = %arg0) : tensor<i32>, tensor<i32>, tensor<f32>, tensor<f32>
    cond {
      %4 = stablehlo.compare LT, %arg1, %2 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %4 : tensor<i1>
    }
    do {
      %5 = stablehlo.compare EQ, %arg2, %0 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %6 = "stablehlo.if"(%5) ({
        %7 = stablehlo.custom_call @sink(%arg3) {has_side_effect = true} : (tensor<f32>) -> tensor<f32>
        stablehlo.return %7 : tensor<f32>
      }, {
        stablehlo.return %arg3 : tensor<f32>
      }) : (tensor<i1>) -> tensor<f32>
      %8 = stablehlo.subtract %1, %arg2 : tensor<i32>
      %9 = stablehlo.add %arg3, %arg3 : tensor<f32>
      %10 = stablehlo.multiply %arg4, %6 : tensor<f32>
      %11 = stablehlo.add %arg1, %1 : tensor<i32>
      stablehlo.return %11, %8, %9, %10 : tensor<i32>, tensor<i32>, tensor<f32>, tensor<f32>
    }
    return %3#2 : tensor<f32>
  }
}
// ---- after simplify_loops ----
module {
  func.func @main(%arg0: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.constant dense<1> : tensor<i32>
    %2 = stablehlo.constant dense<4> : tensor<i32>
    %3:3 = stablehlo.while(%arg1 = %0, %arg2 = %0, %arg3 = %arg0) : tensor<i32>, tensor<i32>, tensor<f32>
    cond {
      %4 = stablehlo.compare LT, %arg1, %2 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %4 : tensor<i1>
    }
    do {
      %5 = stablehlo.compare EQ, %arg2, %0 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %6 = "stablehlo.if"(%5) ({
        %7 = stablehlo.custom_call @sink(%arg3) {has_side_effect = true} : (tensor<f32>) -> tensor<f32>
        stablehlo.return %7 : tensor<f32>
      }, {
        stablehlo.return %arg3 : tensor<f32>
      }) : (tensor<i1>) -> tensor<f32>
      %8 = stablehlo.subtract %1, %arg2 : tensor<i32>
      %9 = stablehlo.add %arg3, %arg3 : tensor<f32>
      %10 = stablehlo.add %arg1, %1 : tensor<i32>
      stablehlo.return %10, %8, %9 : tensor<i32>, tensor<i32>, tensor<f32>
    }
    return %3#2 : tensor<f32>
  }
}
