// Before propagation an unused constraint stays, and so does the carry that it reads.
module {
  sdy.mesh @mesh = <["x"=2]>
  func.func @main(%arg0: tensor<8xf32>, %arg1: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.constant dense<1> : tensor<i32>
    %2 = stablehlo.constant dense<3> : tensor<i32>
    %3:3 = stablehlo.while(%arg2 = %0, %arg3 = %arg0, %arg4 = %arg1) : tensor<i32>, tensor<8xf32>, tensor<8xf32>
    cond {
      %4 = stablehlo.compare LT, %arg2, %2 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %4 : tensor<i1>
    }
    do {
      %5 = stablehlo.add %arg2, %1 : tensor<i32>
      %6 = stablehlo.tanh %arg3 : tensor<8xf32>
      %7 = sdy.sharding_constraint %6 <@mesh, [{"x"}]> : tensor<8xf32>
      %8 = stablehlo.add %arg4, %arg4 : tensor<8xf32>
      stablehlo.return %5, %7, %8 : tensor<i32>, tensor<8xf32>, tensor<8xf32>
    }
    return %3#2 : tensor<8xf32>
  }
}
// ---- after simplify_loops ----
module {
  sdy.mesh @mesh = <["x"=2]>
  func.func @main(%arg0: tensor<8xf32>, %arg1: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.constant dense<1> : tensor<i32>
    %2 = stablehlo.constant dense<3> : tensor<i32>
    %3:3 = stablehlo.while(%arg2 = %0, %arg3 = %arg0, %arg4 = %arg1) : tensor<i32>, tensor<8xf32>, tensor<8xf32>
    cond {
      %4 = stablehlo.compare LT, %arg2, %2 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %4 : tensor<i1>
    }
    do {
      %5 = stablehlo.add %arg2, %1 : tensor<i32>
      %6 = stablehlo.tanh %arg3 : tensor<8xf32>
      %7 = sdy.sharding_constraint %6 <@mesh, [{"x"}]> : tensor<8xf32>
      %8 = stablehlo.add %arg4, %arg4 : tensor<8xf32>
      stablehlo.return %5, %7, %8 : tensor<i32>, tensor<8xf32>, tensor<8xf32>
    }
    return %3#2 : tensor<8xf32>
  }
}
