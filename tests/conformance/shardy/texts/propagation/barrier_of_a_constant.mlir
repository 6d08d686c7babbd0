// A barrier of a constant is a constant: each use has its own.
module {
  sdy.mesh @mesh = <["a"=12, "b"=9]>
  func.func @main(%a29: tensor<8xf32>, %s27_0: tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>) {
    %11 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> (tensor<8xf32>) loc("n11")
    %28 = sdy.propagation_barrier %11 allowed_direction=FORWARD : tensor<8xf32> loc("n28")
    %30 = "stablehlo.clamp"(%s27_0, %28, %a29) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"b", "a", ?}]>]>} : (tensor<f32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>) loc("n30")
    "func.return"(%28, %30) : (tensor<8xf32>, tensor<8xf32>) -> ()
  }
}
