// What stands for an argument of a function hears of a new sharding of its operand in its own turn.
module {
  sdy.mesh @mesh = <["a"=8, "b"=1, "c"=6, "d"=5]>
  func.func @main(%s5_0: tensor<9x24x5xf32>) -> () {
    %53 = "func.call"(%s5_0, %s5_0) <{callee = @f9}> : (tensor<9x24x5xf32>, tensor<9x24x5xf32>) -> (tensor<1080xf32>) loc("n53")
    "func.return"() : () -> ()
  }
  func.func private @f9(%b7: tensor<9x24x5xf32>, %b8: tensor<9x24x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {"c", ?}, {"a", ?}], replicated={"b"}>}) -> (tensor<1080xf32>) {
    %14 = "stablehlo.all_reduce"(%b8) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
    ^bb0(%l10: tensor<f32>, %r11: tensor<f32>):
      %12 = "stablehlo.add"(%l10, %r11) : (tensor<f32>, tensor<f32>) -> (tensor<f32>) loc("n13")
      "stablehlo.return"(%12) : (tensor<f32>) -> ()
    }) : (tensor<9x24x5xf32>) -> (tensor<9x24x5xf32>) loc("n14")
    %15 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> (tensor<i32>) loc("n15")
    %16 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> (tensor<i32>) loc("n16")
    %34:3 = "stablehlo.while"(%15, %b7, %14) ({
    ^bb0(%b17: tensor<i32>, %b18: tensor<9x24x5xf32>, %b19: tensor<9x24x5xf32>):
      %20 = "stablehlo.compare"(%b17, %16) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> (tensor<i1>) loc("n21")
      "stablehlo.return"(%20) : (tensor<i1>) -> ()
    }, {
    ^bb0(%b22: tensor<i32>, %b23: tensor<9x24x5xf32>, %b24: tensor<9x24x5xf32>):
      "stablehlo.return"(%b22, %b24, %b24) : (tensor<i32>, tensor<9x24x5xf32>, tensor<9x24x5xf32>) -> ()
    }) : (tensor<i32>, tensor<9x24x5xf32>, tensor<9x24x5xf32>) -> (tensor<i32>, tensor<9x24x5xf32>, tensor<9x24x5xf32>) loc("n34")
    %35 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> (tensor<i32>) loc("n35")
    %36 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> (tensor<i32>) loc("n36")
    %51:2 = "stablehlo.while"(%35, %14) ({
    ^bb0(%b37: tensor<i32>, %b38: tensor<9x24x5xf32>):
      %39 = "stablehlo.compare"(%b37, %36) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> (tensor<i1>) loc("n40")
      "stablehlo.return"(%39) : (tensor<i1>) -> ()
    }, {
    ^bb0(%b41: tensor<i32>, %b42: tensor<9x24x5xf32>):
      %49 = "stablehlo.complex"(%34#2, %34#2) : (tensor<9x24x5xf32>, tensor<9x24x5xf32>) -> (tensor<9x24x5xcomplex<f32>>) loc("n49")
      %50 = "stablehlo.imag"(%49) : (tensor<9x24x5xcomplex<f32>>) -> (tensor<9x24x5xf32>) loc("n50")
      "stablehlo.return"(%b41, %50) : (tensor<i32>, tensor<9x24x5xf32>) -> ()
    }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>, <@mesh, [{"a"}, {"c":(3)2, "c":(1)3}, {}]>]>} : (tensor<i32>, tensor<9x24x5xf32>) -> (tensor<i32>, tensor<9x24x5xf32>) loc("n51")
    %52 = "stablehlo.reshape"(%b8) : (tensor<9x24x5xf32>) -> (tensor<1080xf32>) loc("n52")
    "func.return"(%52) : (tensor<1080xf32>) -> ()
  }
}
