// What a function says of its result is said of the call's, not of a constraint after it.
module {
  sdy.mesh @mesh = <["a"=8, "b"=12]>
  func.func @main(%a1: tensor<8x9x1xf32>, %s3_0: tensor<24x24x5xf32>) -> (tensor<8x9x1x64xf32>) {
    %33 = "func.call"(%s3_0, %s3_0, %a1) <{callee = @f26}> : (tensor<24x24x5xf32>, tensor<24x24x5xf32>, tensor<8x9x1xf32>) -> (tensor<8x9x1x64xf32>) loc("n33")
    "func.return"(%33) : (tensor<8x9x1x64xf32>) -> ()
  }
  func.func private @f26(%b23: tensor<24x24x5xf32>, %b24: tensor<24x24x5xf32>, %b25: tensor<8x9x1xf32>) -> (tensor<8x9x1x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {}, {"a", ?}, {}], replicated={"b"}>}) {
    %27 = "stablehlo.constant"() <{value = dense<1.0> : tensor<64xf32>}> : () -> (tensor<64xf32>) loc("n27")
    %28 = "stablehlo.dot_general"(%b25, %27) <{dot_dimension_numbers = #stablehlo.dot<>}> : (tensor<8x9x1xf32>, tensor<64xf32>) -> (tensor<8x9x1x64xf32>) loc("n28")
    %32 = "sdy.sharding_constraint"(%28) <{sharding = #sdy.sharding<@mesh, [{}, {"b":(1)6}p0, {"a"}, {}], replicated={"b":(6)2}>}> : (tensor<8x9x1x64xf32>) -> (tensor<8x9x1x64xf32>) loc("n32")
    "func.return"(%32) : (tensor<8x9x1x64xf32>) -> ()
  }
}
