// An inlined mesh has no name.
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<mesh<["a"=2, "b"=2]>, [{"a"}, {}], unreduced={"b"}>}) -> tensor<8x8xf32> {
  %0 = sdy.all_reduce {"b"} %x out_sharding=<mesh<["a"=2, "b"=2]>, [{"a"}, {}]> : tensor<8x8xf32> loc("n0")
  %1 = stablehlo.tanh %0 : tensor<8x8xf32> loc("n1")
  return %1 : tensor<8x8xf32>
}
