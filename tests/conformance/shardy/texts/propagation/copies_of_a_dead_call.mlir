// The call does nothing; its copy of the constant does not count.
module {
  sdy.mesh @mesh = <["a"=8, "b"=8]>
  func.func @main(%s3_0: tensor<4x96xf32>) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b", "a"}]>}) {
    %21 = "func.call"(%s3_0, %s3_0, %s3_0) <{callee = @f7}> : (tensor<4x96xf32>, tensor<4x96xf32>, tensor<4x96xf32>) -> (tensor<1x1x8xf32>) loc("n21")
    %28 = "stablehlo.reshape"(%21) : (tensor<1x1x8xf32>) -> (tensor<8xf32>) loc("n28")
    "func.return"(%28) : (tensor<8xf32>) -> ()
  }
  func.func private @f15(%b12: tensor<1x1x8xf32>, %b13: tensor<1x8x8xf32>, %b14: tensor<4x96xf32>) -> (tensor<1x8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {"a"}, {}]>}, tensor<1x11xf32>) {
    %17 = "stablehlo.slice"(%b14) <{start_indices = array<i64: 1, 20>, limit_indices = array<i64: 2, 42>, strides = array<i64: 2, 2>}> : (tensor<4x96xf32>) -> (tensor<1x11xf32>) loc("n17")
    "func.return"(%b13, %17) : (tensor<1x8x8xf32>, tensor<1x11xf32>) -> ()
  }
  func.func private @f7(%b4: tensor<4x96xf32>, %b5: tensor<4x96xf32>, %b6: tensor<4x96xf32>) -> (tensor<1x1x8xf32>) {
    %8 = "stablehlo.constant"() <{value = dense<1.0> : tensor<1x8x8xf32>}> : () -> (tensor<1x8x8xf32>) loc("n8")
    %9 = "stablehlo.constant"() <{value = dense<1.0> : tensor<1x1x8xf32>}> : () -> (tensor<1x1x8xf32>) loc("n9")
    %18:2 = "func.call"(%9, %8, %b5) <{callee = @f15}> : (tensor<1x1x8xf32>, tensor<1x8x8xf32>, tensor<4x96xf32>) -> (tensor<1x8x8xf32>, tensor<1x11xf32>) loc("n18")
    %19 = "stablehlo.complex"(%9, %9) : (tensor<1x1x8xf32>, tensor<1x1x8xf32>) -> (tensor<1x1x8xcomplex<f32>>) loc("n19")
    %20 = "stablehlo.imag"(%19) : (tensor<1x1x8xcomplex<f32>>) -> (tensor<1x1x8xf32>) loc("n20")
    "func.return"(%20) : (tensor<1x1x8xf32>) -> ()
  }
}
