// A member that a loop carries is sharded as the loop's result.
module {
  sdy.mesh @mesh = <["a"=9, "b"=12]>
  func.func @main(%s4_0: tensor<i32>, %s3_0: tensor<i32>, %s2_0: tensor<2x32x2xf32>) -> (tensor<2x32x2xf32>) {
    %33:4 = "stablehlo.while"(%s3_0, %s2_0, %s2_0, %s2_0) ({
    ^bb0(%b5: tensor<i32>, %b6: tensor<2x32x2xf32>, %b7: tensor<2x32x2xf32>, %b8: tensor<2x32x2xf32>):
      %9 = "stablehlo.compare"(%b5, %s4_0) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> (tensor<i1>) loc("n10")
      "stablehlo.return"(%9) : (tensor<i1>) -> ()
    }, {
    ^bb0(%b11: tensor<i32>, %b12: tensor<2x32x2xf32>, %b13: tensor<2x32x2xf32>, %b14: tensor<2x32x2xf32>):
      %15 = "sdy.sharding_constraint"(%b13) <{sharding = #sdy.sharding<@mesh, [{"b":(1)2, ?}, {"b":(6)2}, {}], replicated={"b":(2)3}>}> : (tensor<2x32x2xf32>) -> (tensor<2x32x2xf32>) loc("n15")
      sdy.sharding_group %15 group_id=16 : tensor<2x32x2xf32> loc("n17")
      sdy.sharding_group %b13 group_id=16 : tensor<2x32x2xf32> loc("n18")
      "stablehlo.return"(%b11, %b14, %b14, %b14) : (tensor<i32>, tensor<2x32x2xf32>, tensor<2x32x2xf32>, tensor<2x32x2xf32>) -> ()
    }) : (tensor<i32>, tensor<2x32x2xf32>, tensor<2x32x2xf32>, tensor<2x32x2xf32>) -> (tensor<i32>, tensor<2x32x2xf32>, tensor<2x32x2xf32>, tensor<2x32x2xf32>) loc("n33")
    "func.return"(%33#2) : (tensor<2x32x2xf32>) -> ()
  }
}
