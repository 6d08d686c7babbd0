// The axes p and q of the other mesh are digits of those of the program's, so the annotation is written with these.
module {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  sdy.mesh @other = <["p"=2, "q"=4]>
  func.func public @main(%arg0: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<16x8xf32> {
    %0 = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@other, [{"q"}, {}]>]>} : tensor<16x8xf32>
    return %0 : tensor<16x8xf32>
  }
}
// ---- after choose ----
module {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  sdy.mesh @other = <["p"=2, "q"=4]>
  func.func public @main(%arg0: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<16x8xf32> {
    %0 = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x":(2)2, "y"}, {}]>]>} : tensor<16x8xf32>
    return %0 : tensor<16x8xf32>
  }
}
