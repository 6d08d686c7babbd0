// The call says nothing, so its copy of the constant does not.
module {
  sdy.mesh @mesh = <["a"=12]>
  func.func @main(%a24: tensor<9x9x4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a":(6)2}, {?}, {?}]>}) -> (tensor<9x9x4xf32>) {
    %25 = "stablehlo.iota"() <{iota_dimension = 2 : i64}> : () -> (tensor<9x9x4xf32>) loc("n25")
    %26 = "stablehlo.custom_call"(%a24, %25) <{call_target_name = "ProductOfElementaryHouseholderReflectors"}> : (tensor<9x9x4x4xf32>, tensor<9x9x4xf32>) -> (tensor<9x9x4x4xf32>) loc("n26")
    "func.return"(%25) : (tensor<9x9x4xf32>) -> ()
  }
}
