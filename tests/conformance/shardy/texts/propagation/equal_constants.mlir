// Equal constants stay apart until the end.
module {
  sdy.mesh @mesh = <["a"=5, "b"=2]>
  func.func @main(%a8: tensor<1xi32>) -> (tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b", ?}]>}, tensor<f32>) {
    %6 = "stablehlo.constant"() <{value = dense<1.0> : tensor<16xf32>}> : () -> (tensor<16xf32>) loc("n6")
    %14 = "stablehlo.constant"() <{value = dense<1.0> : tensor<16xf32>}> : () -> (tensor<16xf32>) loc("n14")
    %15 = "stablehlo.subtract"(%6, %14) : (tensor<16xf32>, tensor<16xf32>) -> (tensor<16xf32>) loc("n15")
    %25 = "func.call"(%a8, %15, %14) <{callee = @f19}> : (tensor<1xi32>, tensor<16xf32>, tensor<16xf32>) -> (tensor<f32>) loc("n25")
    "func.return"(%14, %25) : (tensor<16xf32>, tensor<f32>) -> ()
  }
  func.func private @f19(%b16: tensor<1xi32>, %b17: tensor<16xf32>, %b18: tensor<16xf32>) -> (tensor<f32>) {
    %20 = "stablehlo.dot_general"(%b17, %b18) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>}> : (tensor<16xf32>, tensor<16xf32>) -> (tensor<f32>) loc("n20")
    "func.return"(%20) : (tensor<f32>) -> ()
  }
}
