// A call of constants is one itself: both operands come from one copy.
module {
  sdy.mesh @mesh = <["a"=4, "b"=8]>
  func.func @main() -> (tensor<16xi1>) {
    %1 = "stablehlo.constant"() <{value = dense<1> : tensor<16xi32>}> : () -> (tensor<16xi32>) loc("n1")
    %7:2 = "func.call"(%1, %1) <{callee = @f4}> : (tensor<16xi32>, tensor<16xi32>) -> (tensor<16xi1>, tensor<16xi1>) loc("n7")
    "func.return"(%7#1) : (tensor<16xi1>) -> ()
  }
  func.func private @f4(%b2: tensor<16xi32>, %b3: tensor<16xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"b":(2)4, "b":(1)2}], replicated={"a"}>}) -> (tensor<16xi1>, tensor<16xi1>) {
    %5 = "stablehlo.constant"() <{value = dense<true> : tensor<16xi1>}> : () -> (tensor<16xi1>) loc("n5")
    "func.return"(%5, %5) : (tensor<16xi1>, tensor<16xi1>) -> ()
  }
}
