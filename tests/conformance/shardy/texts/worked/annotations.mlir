// Constraints, groups, constants, and what is left at the borders of a program.
// ---- Sharding constraint: its own sharding is the result's, whose open dims may grow
// passes: sdy-user-priority-propagate
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b"}]>}) -> tensor<8x8xf32> {     // => [{"a", ?}, {"b"}]
  %0 = sdy.sharding_constraint %x <@mesh, [{"a"}, {?}]> : tensor<8x8xf32>                             // => [{"a"}, {"b", ?}]
  %1 = stablehlo.tanh %0 : tensor<8x8xf32>                                                            // => [{"a", ?}, {"b", ?}]
  return %1 : tensor<8x8xf32>                                                                         // => [{"a", ?}, {"b", ?}]
}
// ---- Applied constraints: a closed one goes to an input that has none, and to what else uses it
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x8xf32>, %y: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {                 // => [{"a"}, {}]
  %0 = stablehlo.add %x, %y : tensor<8x8xf32>                                                         // => [{"a"}, {}]
  %1 = sdy.sharding_constraint %0 <@mesh, [{"a"}, {}]> : tensor<8x8xf32>                              // => [{"a"}, {}]
  %2 = stablehlo.tanh %0 : tensor<8x8xf32>                                                            // => [{}, {"b"}]
  %3 = sdy.sharding_constraint %2 <@mesh, [{}, {"b"}]> : tensor<8x8xf32>                              // => [{}, {"b"}]
  return %1, %3 : tensor<8x8xf32>, tensor<8x8xf32>                                                    // => [{"a"}, {}] ; [{}, {"b"}]
}
// ---- Applied constraints: an open one does not
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {?}]>}) -> (tensor<8x8xf32>, tensor<8x8xf32>) { // => [{"b"}, {}]
  %0 = stablehlo.tanh %x : tensor<8x8xf32>                                                            // => [{"b"}, {}]
  %1 = sdy.sharding_constraint %0 <@mesh, [{"a"}, {?}]> : tensor<8x8xf32>                             // => [{"a"}, {}]
  %2 = stablehlo.tanh %0 : tensor<8x8xf32>                                                            // => [{"b"}, {}]
  return %1, %2 : tensor<8x8xf32>, tensor<8x8xf32>                                                    // => [{"a"}, {}] ; [{"b"}, {}]
}
// ---- Applied constraints: the closed one beside it, which does
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {?}]>}) -> (tensor<8x8xf32>, tensor<8x8xf32>) { // => [{"b"}, {}]
  %0 = stablehlo.tanh %x : tensor<8x8xf32>                                                            // => [{"a"}, {}]
  %1 = sdy.sharding_constraint %0 <@mesh, [{"a"}, {}]> : tensor<8x8xf32>                              // => [{"a"}, {}]
  %2 = stablehlo.tanh %0 : tensor<8x8xf32>                                                            // => [{"a"}, {}]
  return %1, %2 : tensor<8x8xf32>, tensor<8x8xf32>                                                    // => [{"a"}, {}] ; [{"a"}, {}]
}
// ---- Applied constraints: of two that differ neither is applied, and the argument decides
sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2]>
func.func @main(
    %x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"c"}, {?}]>}) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) { // => [{"c"}, {}]
  %0 = stablehlo.tanh %x : tensor<8x8xf32>                                                            // => [{"c"}, {}]
  %1 = sdy.sharding_constraint %0 <@mesh, [{"a"}, {}]> : tensor<8x8xf32>                              // => [{"a"}, {}]
  %2 = sdy.sharding_constraint %0 <@mesh, [{"b"}, {}]> : tensor<8x8xf32>                              // => [{"b"}, {}]
  %3 = stablehlo.negate %0 : tensor<8x8xf32>                                                          // => [{"c"}, {}]
  return %1, %2, %3 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>                               // => [{"a"}, {}] ; [{"b"}, {}] ; [{"c"}, {}]
}
// ---- Applied constraints: an input with a sharding of its own keeps it
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>}) -> (tensor<8x8xf32>, tensor<8x8xf32>) { // => [{"b"}, {}]
  %0 = sdy.sharding_constraint %x <@mesh, [{"a"}, {}]> : tensor<8x8xf32>                              // => [{"a"}, {}]
  %1 = stablehlo.tanh %x : tensor<8x8xf32>                                                            // => [{"b"}, {}]
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>                                                    // => [{"a"}, {}] ; [{"b"}, {}]
}
// ---- Applied constraints: the in_sharding of a manual computation counts as one
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {                                      // => [{"a"}, {}]
  %0 = stablehlo.tanh %x : tensor<8x8xf32>                                                            // => [{"a"}, {}]
  %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"a"}, {}]>] out_shardings=[<@mesh, [{"a"}, {}]>] manual_axes={"a"} (%y: tensor<4x8xf32>) {
    sdy.return %y : tensor<4x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>                                                            // => [{"a"}, {}] ; [{"a"}, {}]
  %2 = stablehlo.negate %0 : tensor<8x8xf32>                                                          // => [{"a"}, {}]
  return %1, %2 : tensor<8x8xf32>, tensor<8x8xf32>                                                    // => [{"a"}, {}] ; [{"a"}, {}]
}
// ---- Applied constraints: of a data flow value it is moved after it and takes all uses
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {                                      // => [{"a"}, {}]
  %0 = stablehlo.optimization_barrier %x : tensor<8x8xf32>                                            // => [{"a"}, {}]
  %1 = stablehlo.tanh %0 : tensor<8x8xf32>                                                            // => [{"a"}, {}]
  %2 = sdy.sharding_constraint %0 <@mesh, [{"a"}, {}]> : tensor<8x8xf32>                              // => [{"a"}, {}]
  return %1, %2 : tensor<8x8xf32>, tensor<8x8xf32>                                                    // => [{"a"}, {}] ; [{"a"}, {}]
}
// ---- Applied constraints, unreduced: a data flow value gets those axes itself
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x8xf32>) -> tensor<8x8xf32> {                                                         // => -
  %0 = stablehlo.optimization_barrier %x : tensor<8x8xf32>                                            // => [{}, {}], unreduced={"b"}
  %1 = sdy.sharding_constraint %0 <@mesh, [{}, {}], unreduced={"b"}> : tensor<8x8xf32>                // => [{}, {}], unreduced={"b"}
  %2 = sdy.sharding_constraint %1 <@mesh, [{}, {}]> : tensor<8x8xf32>                                 // => -
  return %2 : tensor<8x8xf32>                                                                         // => -
}
// ---- Applied constraints, chain: what uses the head's input later uses the tail
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {                     // => [{"a"}, {}]
  %0 = stablehlo.tanh %x : tensor<8x8xf32>                                                            // => [{"a"}, {}]
  %1 = sdy.sharding_constraint %0 <@mesh, [{"a"}, {}]> : tensor<8x8xf32>                              // => [{"a"}, {}]
  %2 = sdy.sharding_constraint %1 <@mesh, [{}, {"b"}]> : tensor<8x8xf32>                              // => [{}, {"b"}]
  %3 = stablehlo.negate %0 : tensor<8x8xf32>                                                          // => [{}, {"b"}]
  return %2, %3, %0 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>                               // => [{}, {"b"}] ; [{}, {"b"}] ; [{"a"}, {}]
}
// ---- Applied constraints: one that nobody uses still matters
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x8xf32>) -> tensor<8x8xf32> {                                                         // => [{"a"}, {}]
  %0 = sdy.sharding_constraint %x <@mesh, [{"a"}, {}]> : tensor<8x8xf32>
  %1 = stablehlo.tanh %x : tensor<8x8xf32>                                                            // => [{"a"}, {}]
  return %1 : tensor<8x8xf32>                                                                         // => [{"a"}, {}]
}
// ---- Sharding groups: the pass that propagates knows them, too
// passes: sdy-user-priority-propagate
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>},                          // => [{"a"}, {"b", ?}]
    %y: tensor<8x8xf32>,                                                                              // => [{"a"}, {"b", ?}]
    %z: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b"}]>}) -> (tensor<8x8xf32>, tensor<8x8xf32>) { // => [{"a", ?}, {"b"}]
  sdy.sharding_group %x group_id=0 : tensor<8x8xf32>
  sdy.sharding_group %y group_id=0 : tensor<8x8xf32>
  %0 = stablehlo.add %x, %z : tensor<8x8xf32>                                                         // => [{"a", ?}, {"b", ?}]
  %1 = stablehlo.negate %y : tensor<8x8xf32>                                                          // => [{"a", ?}, {"b", ?}]
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>                                                    // => [{"a", ?}, {"b", ?}] ; [{"a", ?}, {"b", ?}]
}
// ---- Sharding groups: members are equal from the start, and what one learns all know
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},                       // => [{"a"}, {"b"}]
    %y: tensor<8x8xf32>,                                                                              // => [{"a"}, {"b"}]
    %z: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b"}]>}) -> (tensor<8x8xf32>, tensor<8x8xf32>) { // => [{"a"}, {"b"}]
  sdy.sharding_group %x group_id=0 : tensor<8x8xf32>
  sdy.sharding_group %y group_id=0 : tensor<8x8xf32>
  %0 = stablehlo.add %x, %z : tensor<8x8xf32>                                                         // => [{"a"}, {"b"}]
  %1 = stablehlo.negate %y : tensor<8x8xf32>                                                          // => [{"a"}, {"b"}]
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>                                                    // => [{"a"}, {"b"}] ; [{"a"}, {"b"}]
}
// ---- Sharding groups: a value in two groups makes them one
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},                           // => [{"a"}, {}]
    %y: tensor<8x8xf32>,                                                                              // => [{"a"}, {}]
    %z: tensor<8x8xf32>) -> tensor<8x8xf32> {                                                         // => [{"a"}, {}]
  sdy.sharding_group %x group_id=7 : tensor<8x8xf32>
  sdy.sharding_group %y group_id=7 : tensor<8x8xf32>
  sdy.sharding_group %y group_id=3 : tensor<8x8xf32>
  sdy.sharding_group %z group_id=3 : tensor<8x8xf32>
  return %z : tensor<8x8xf32>                                                                         // => [{"a"}, {}]
}
// ---- Sharding groups: shardings that conflict at first are parted by open constraints
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},                           // => [{"a"}, {}]
    %y: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>},                           // => [{"b"}, {}]
    %z: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {                                      // => [{"b"}, {}]
  sdy.sharding_group %x group_id=0 : tensor<8x8xf32>
  sdy.sharding_group %y group_id=0 : tensor<8x8xf32>
  sdy.sharding_group %z group_id=0 : tensor<8x8xf32>
  %0 = stablehlo.tanh %x : tensor<8x8xf32>                                                            // => [{"b"}, {}]
  %1 = stablehlo.negate %z : tensor<8x8xf32>                                                          // => [{"b"}, {}]
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>                                                    // => [{"b"}, {}] ; [{"b"}, {}]
}
// ---- Constants: a copy per user, so that two uses do not tie each other
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>},                          // => [{"a"}, {}]
    %y: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {?}]>}) -> (tensor<8x8xf32>, tensor<8x8xf32>) { // => [{"b"}, {}]
  %c = stablehlo.constant dense<1.000000e+00> : tensor<8x8xf32>                                       // => [{"a"}, {}] | [{"b"}, {}]
  %0 = stablehlo.add %x, %c : tensor<8x8xf32>                                                         // => [{"a"}, {}]
  %1 = stablehlo.add %y, %c : tensor<8x8xf32>                                                         // => [{"b"}, {}]
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>                                                    // => [{"a"}, {}] ; [{"b"}, {}]
}
// ---- Constants: chains of them, too: iota, elementwise ops, reshapes, broadcasts of scalars
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x8xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>},                          // => [{"a"}, {}]
    %y: tensor<8x8xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {?}]>},                          // => [{"b"}, {}]
    %s: tensor<i32>) -> (tensor<8x8xi32>, tensor<8x8xi32>) {
  %i = stablehlo.iota dim = 0 : tensor<64xi32>                                                        // => [{"a"}] | [{"b"}]
  %r = stablehlo.reshape %i : (tensor<64xi32>) -> tensor<8x8xi32>                                     // => [{"a"}, {}] | [{"b"}, {}]
  %n = stablehlo.negate %r : tensor<8x8xi32>                                                          // => [{"a"}, {}] | [{"b"}, {}]
  %b = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<i32>) -> tensor<8x8xi32>                    // => [{"a"}, {}] | [{"b"}, {}]
  %0 = stablehlo.add %x, %n : tensor<8x8xi32>                                                         // => [{"a"}, {}]
  %1 = stablehlo.add %y, %n : tensor<8x8xi32>                                                         // => [{"b"}, {}]
  %2 = stablehlo.add %0, %b : tensor<8x8xi32>                                                         // => [{"a"}, {}]
  %3 = stablehlo.add %1, %b : tensor<8x8xi32>                                                         // => [{"b"}, {}]
  return %2, %3 : tensor<8x8xi32>, tensor<8x8xi32>                                                    // => [{"a"}, {}] ; [{"b"}, {}]
}
// ---- Constants: what is computed from an argument is one value, which two uses tie
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},                           // => [{"a"}, {}]
    %y: tensor<8x8xf32>,                                                                              // => [{"a"}, {}]
    %v: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {                                      // => [{"a"}, {}]
  %c = stablehlo.tanh %v : tensor<8x8xf32>                                                            // => [{"a"}, {}]
  %0 = stablehlo.add %x, %c : tensor<8x8xf32>                                                         // => [{"a"}, {}]
  %1 = stablehlo.add %y, %c : tensor<8x8xf32>                                                         // => [{"a"}, {}]
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>                                                    // => [{"a"}, {}] ; [{"a"}, {}]
}
// ---- After propagation: arguments and results shrink to what divides them, by a part of an axis where it is cut
sdy.mesh @mesh = <["a"=4, "b"=2]>
func.func @main(
    %x: tensor<6x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>},                        // => [{"a":(1)2}, {"b"}]
    %y: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b", "a"}, {}]>}) -> (tensor<6x8xf32>, tensor<4x8xf32>) { // => [{"b", "a":(1)2}, {}]
  %0 = stablehlo.tanh %x : tensor<6x8xf32>                                                            // => [{"a"}, {"b"}]
  return %0, %y : tensor<6x8xf32>, tensor<4x8xf32>                                                    // => [{}, {"b"}] ; [{"b"}, {}]
}
// ---- After propagation: parts of axes leave the open dims of main, with what follows them
sdy.mesh @mesh = <["a"=4, "b"=2]>
func.func @main(
    %x: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b", "a":(1)2, ?}]>},                   // => [{"b"}]
    %y: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a":(1)2, "b", ?}]>},                   // => -
    %z: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a":(1)2, "b"}]>}) -> (tensor<16xf32>, tensor<16xf32>) { // => [{"a":(1)2, "b"}]
  %0 = stablehlo.tanh %x : tensor<16xf32>                                                             // => [{"b", "a":(1)2}]
  %1 = stablehlo.tanh %y : tensor<16xf32>                                                             // => [{"a":(1)2, "b"}]
  return %0, %1 : tensor<16xf32>, tensor<16xf32>                                                      // => [{"b"}] ; -
}
// ---- After propagation: dims are closed, lists of replicated axes go, unreduced axes stay
sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2]>
func.func @main(
    %x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}], replicated={"c"}, unreduced={"b"}>}) -> tensor<8x8xf32> { // => [{"a"}, {}], unreduced={"b"}
  %0 = sdy.sharding_constraint %x <@mesh, [{"a", ?}, {?}], replicated={"c"}, unreduced={"b"}> : tensor<8x8xf32> // => [{"a"}, {}], unreduced={"b"}
  return %0 : tensor<8x8xf32>                                                                         // => [{"a"}, {}]
}
// ---- Import: axes of size 1 go
sdy.mesh @mesh = <["a"=2, "one"=1, "b"=2]>
func.func @main(
    %x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"one", "a"}, {"b", ?}]>}) -> tensor<8x8xf32> { // => [{"a"}, {"b"}]
  %0 = stablehlo.tanh %x : tensor<8x8xf32>                                                            // => [{"a"}, {"b"}]
  return %0 : tensor<8x8xf32>                                                                         // => [{"a"}, {"b"}]
}
// ---- Sharding groups: by way of data flow
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>},                          // => [{"a"}, {}]
    %y: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {                                      // => [{"a"}, {}]
  %0 = stablehlo.optimization_barrier %x : tensor<8x8xf32>                                            // => [{"a"}, {}]
  sdy.sharding_group %0 group_id=0 : tensor<8x8xf32>
  sdy.sharding_group %y group_id=0 : tensor<8x8xf32>
  %1 = stablehlo.transpose %y, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>                   // => [{}, {"a"}]
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>                                                    // => [{"a"}, {}] ; [{}, {"a"}]
}
// ---- Constants: a scalar stays one
sdy.mesh @mesh = <["a"=2]>
func.func @main(
    %x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<8xf32> {              // => [{"a"}]
  %c = stablehlo.constant dense<1.000000e+00> : tensor<f32>                                           // => -
  %b = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<8xf32>                      // => [{"a"}]
  %0 = stablehlo.add %x, %b : tensor<8xf32>                                                           // => [{"a"}]
  %1 = stablehlo.multiply %0, %b : tensor<8xf32>                                                      // => [{"a"}]
  return %1 : tensor<8xf32>                                                                           // => [{"a"}]
}
// ---- Import: a mesh written out in a sharding is that of its name
sdy.mesh @mesh = <["a"=2]>
func.func @main(
    %x: tensor<8xf32> {sdy.sharding = #sdy.sharding<mesh<["a"=2]>, [{"a"}]>}) -> tensor<8xf32> {      // => [{"a"}]
  %0 = stablehlo.tanh %x : tensor<8xf32>                                                              // => [{"a"}]
  return %0 : tensor<8xf32>                                                                           // => [{"a"}]
}
