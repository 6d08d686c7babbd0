// The worked examples of how a reshape hands on parts of axes.
// ---- Reshape worked examples: 8 over a=4 becomes 2x4
// passes: sdy-user-priority-propagate
sdy.mesh @mesh = <["a"=4]>
func.func @main(
    %x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<2x4xf32> {           // => [{"a"}]
  %0 = stablehlo.reshape %x : (tensor<8xf32>) -> tensor<2x4xf32>                                      // => [{"a":(1)2, ?}, {"a":(2)2, ?}]
  return %0 : tensor<2x4xf32>                                                                         // => [{"a":(1)2, ?}, {"a":(2)2, ?}]
}
// ---- Reshape worked examples: and back from there, merged where the factors meet
sdy.mesh @mesh = <["a"=4]>
func.func @main(
    %x: tensor<2x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a":(1)2}, {"a":(2)2}]>}) -> tensor<8xf32> { // => [{"a":(1)2}, {"a":(2)2}]
  %0 = stablehlo.reshape %x : (tensor<2x4xf32>) -> tensor<8xf32>                                      // => [{"a"}]
  return %0 : tensor<8xf32>                                                                           // => [{"a"}]
}
// ---- Reshape worked examples: 32 over a=16 becomes 4x2x4, and then 4x8
// passes: sdy-user-priority-propagate
sdy.mesh @mesh = <["a"=16]>
func.func @main(
    %x: tensor<32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<4x8xf32> {           // => [{"a"}]
  %0 = stablehlo.reshape %x : (tensor<32xf32>) -> tensor<4x2x4xf32>                                   // => [{"a":(1)4, ?}, {"a":(4)2, ?}, {"a":(8)2, ?}]
  %1 = stablehlo.reshape %0 : (tensor<4x2x4xf32>) -> tensor<4x8xf32>                                  // => [{"a":(1)4, ?}, {"a":(4)4, ?}]
  return %1 : tensor<4x8xf32>                                                                         // => [{"a":(1)4, ?}, {"a":(4)4, ?}]
}
// ---- Reshape worked examples: 8 over a=6, the minor factor need not divide
// passes: sdy-user-priority-propagate
sdy.mesh @mesh = <["a"=6]>
func.func @main(
    %x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<2x4xf32> {            // => [{"a"}]
  %0 = stablehlo.reshape %x : (tensor<8xf32>) -> tensor<2x4xf32>                                      // => [{"a":(1)2, ?}, {"a":(2)3, ?}]
  return %0 : tensor<2x4xf32>                                                                         // => [{"a":(1)2, ?}, {"a":(2)3, ?}]
}
// ---- Reshape worked examples: 8 over a=16, more shards than elements
// passes: sdy-user-priority-propagate
sdy.mesh @mesh = <["a"=16]>
func.func @main(
    %x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<2x4xf32> {            // => [{"a"}]
  %0 = stablehlo.reshape %x : (tensor<8xf32>) -> tensor<2x4xf32>                                      // => [{"a":(1)2, ?}, {"a":(2)8, ?}]
  return %0 : tensor<2x4xf32>                                                                         // => [{"a":(1)2, ?}, {"a":(2)8, ?}]
}
// ---- Reshape worked examples: 8 over a=3, coprime
// passes: sdy-user-priority-propagate
sdy.mesh @mesh = <["a"=3]>
func.func @main(
    %x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<2x4xf32> {            // => [{"a"}]
  %0 = stablehlo.reshape %x : (tensor<8xf32>) -> tensor<2x4xf32>                                      // => -
  return %0 : tensor<2x4xf32>                                                                         // => -
}
// ---- Reshape worked examples: 32 over a=2, b=3, of which b overflows
// passes: sdy-user-priority-propagate
sdy.mesh @mesh = <["a"=2, "b"=3]>
func.func @main(
    %x: tensor<32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}]>}) -> tensor<8x4xf32> {      // => [{"a", "b"}]
  %0 = stablehlo.reshape %x : (tensor<32xf32>) -> tensor<8x4xf32>                                     // => [{"a", ?}, {?}]
  return %0 : tensor<8x4xf32>                                                                         // => [{"a", ?}, {?}]
}
// ---- Reshape worked examples: 2x4 becomes 8, each dim full
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<2x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) -> tensor<8xf32> {     // => [{"a"}, {"b"}]
  %0 = stablehlo.reshape %x : (tensor<2x4xf32>) -> tensor<8xf32>                                      // => [{"a", "b"}]
  return %0 : tensor<8xf32>                                                                           // => [{"a", "b"}]
}
// ---- Reshape worked examples: 4x4 becomes 16, where b would be strided
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) -> tensor<16xf32> {    // => [{"a"}, {"b"}]
  %0 = stablehlo.reshape %x : (tensor<4x4xf32>) -> tensor<16xf32>                                     // => [{"a"}]
  return %0 : tensor<16xf32>                                                                          // => [{"a"}]
}
// ---- Reshape worked examples: 4x4 over a=4, b=2, c=2, the major factor is full with a digit of a
// passes: sdy-user-priority-propagate
sdy.mesh @mesh = <["a"=4, "b"=2, "c"=2]>
func.func @main(
    %x: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b", "a"}, {"c"}]>}) -> tensor<16xf32> { // => [{"b", "a"}, {"c"}]
  %0 = stablehlo.reshape %x : (tensor<4x4xf32>) -> tensor<16xf32>                                     // => [{"b", "a":(1)2, "c", ?}]
  return %0 : tensor<16xf32>                                                                          // => [{"b", "a":(1)2, "c", ?}]
}
// ---- Reshape factorisation: 8x4 becomes 2x16, the minor part of 8 joins 4
// passes: sdy-user-priority-propagate
sdy.mesh @mesh = <["a"=8, "b"=4]>
func.func @main(
    %x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) -> tensor<2x16xf32> {  // => [{"a"}, {"b"}]
  %0 = stablehlo.reshape %x : (tensor<8x4xf32>) -> tensor<2x16xf32>                                   // => [{"a":(1)2, ?}, {"a":(2)4, "b", ?}]
  return %0 : tensor<2x16xf32>                                                                        // => [{"a":(1)2, ?}, {"a":(2)4, "b", ?}]
}
// ---- Reshape factorisation: 3x2 becomes 2x3, nothing is shared
sdy.mesh @mesh = <["a"=3, "b"=2]>
func.func @main(
    %x: tensor<3x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) -> tensor<2x3xf32> {   // => [{"a"}, {"b"}]
  %0 = stablehlo.reshape %x : (tensor<3x2xf32>) -> tensor<2x3xf32>                                    // => -
  return %0 : tensor<2x3xf32>                                                                         // => -
}
// ---- Reshape factorisation: 6x4 becomes 4x6, the major 2 and the minor 2 are shared
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<6x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>},                        // => [{"a"}, {"b"}]
    %y: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> (tensor<4x6xf32>, tensor<6x4xf32>) { // => [{"a"}, {}]
  %0 = stablehlo.reshape %x : (tensor<6x4xf32>) -> tensor<4x6xf32>                                    // => [{"a"}, {}]
  %1 = stablehlo.reshape %y : (tensor<4x6xf32>) -> tensor<6x4xf32>                                    // => [{"a"}, {}]
  return %0, %1 : tensor<4x6xf32>, tensor<6x4xf32>                                                    // => [{"a"}, {}] ; [{"a"}, {}]
}
// ---- Representation, motivation of parts of axes: data stays in place where a dim is cut in two
// passes: sdy-user-priority-propagate
sdy.mesh @mesh_x = <["x"=4]>
func.func @main(
    %arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh_x, [{"x"}]>}) -> tensor<2x4xf32> {       // => [{"x"}]
  %0 = stablehlo.reshape %arg0 : (tensor<8xf32>) -> tensor<2x4xf32>                                   // => [{"x":(1)2, ?}, {"x":(2)2, ?}]
  return %0 : tensor<2x4xf32>                                                                         // => [{"x":(1)2, ?}, {"x":(2)2, ?}]
}
