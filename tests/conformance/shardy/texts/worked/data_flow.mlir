// What passes along edges: loops, branches, manual regions, calls.
// ---- Data flow edges, while: operands and the body's results tell results and arguments
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>},                          // => [{"a"}, {"b"}]
    %n: tensor<i32>,
    %w: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b"}]>}) -> tensor<8x8xf32> {     // => [{}, {"b"}]
  %0:2 = stablehlo.while(%u = %x, %i = %n) : tensor<8x8xf32>, tensor<i32>
  cond {
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %h = stablehlo.tanh %u : tensor<8x8xf32>                                                          // => [{"a"}, {"b"}]
    %d = stablehlo.dot_general %h, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> // => [{"a"}, {"b"}]
    %j = stablehlo.add %i, %n : tensor<i32>
    stablehlo.return %d, %j : tensor<8x8xf32>, tensor<i32>
  }
  %1 = stablehlo.negate %0#0 : tensor<8x8xf32>                                                        // => [{"a"}, {"b"}]
  return %1 : tensor<8x8xf32>                                                                         // => [{"a"}, {"b"}]
}
// ---- Data flow edges, while: the results tell the operands
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x8xf32>,                                                                              // => [{"a"}, {"b"}]
    %p: tensor<i1>) -> (
    tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) {
  %0:2 = stablehlo.while(%u = %x, %i = %p) : tensor<8x8xf32>, tensor<i1>
  cond {
    stablehlo.return %i : tensor<i1>
  } do {
    %h = stablehlo.tanh %u : tensor<8x8xf32>                                                          // => [{"a"}, {"b"}]
    stablehlo.return %h, %i : tensor<8x8xf32>, tensor<i1>
  }
  return %0#0 : tensor<8x8xf32>                                                                       // => [{"a"}, {"b"}]
}
// ---- Data flow edges, case: what each branch returns tells the result, and is told by it
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %i: tensor<i32>,
    %x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>},                          // => [{"a"}, {"b"}]
    %y: tensor<8x8xf32>) -> (                                                                         // => [{"a"}, {"b"}]
    tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b"}]>}) {
  %0 = "stablehlo.case"(%i) ({
    %1 = stablehlo.tanh %x : tensor<8x8xf32>                                                          // => [{"a"}, {"b"}]
    stablehlo.return %1 : tensor<8x8xf32>
  }, {
    %1 = stablehlo.negate %y : tensor<8x8xf32>                                                        // => [{"a"}, {"b"}]
    stablehlo.return %1 : tensor<8x8xf32>
  }) : (tensor<i32>) -> tensor<8x8xf32>                                                               // => [{"a"}, {"b"}]
  return %0 : tensor<8x8xf32>                                                                         // => [{"a"}, {"b"}]
}
// ---- Data flow edges, optimization_barrier: operand i and result i, and no other
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>},                          // => [{"a"}, {}]
    %y: tensor<8x8xf32>) -> (                                                                         // => [{}, {"b"}]
    tensor<8x8xf32>, tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b"}]>}) {
  %0:2 = stablehlo.optimization_barrier %x, %y : tensor<8x8xf32>, tensor<8x8xf32>                     // => [{"a"}, {}] ; [{}, {"b"}]
  return %0#0, %0#1 : tensor<8x8xf32>, tensor<8x8xf32>                                                // => [{"a"}, {}] ; [{}, {"b"}]
}
// ---- Data flow edges: one written out, source and targets are alike
// passes: sdy-user-priority-propagate
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>}) -> (                     // => [{"a"}, {"b", ?}]
    tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b"}]>}) {
  %0 = stablehlo.optimization_barrier %x : tensor<8x8xf32>                                            // => -
  %1 = sdy.data_flow_edge %0 : tensor<8x8xf32>                                                        // => [{"a", ?}, {"b", ?}]
  %2 = stablehlo.tanh %1 : tensor<8x8xf32>                                                            // => [{"a", ?}, {"b", ?}]
  return %2 : tensor<8x8xf32>                                                                         // => [{"a", ?}, {"b"}]
}
// ---- Data flow edges: tokens are skipped
sdy.mesh @mesh = <["a"=2]>
func.func @main(
    %x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>},                                 // => [{"a"}]
    %t: !stablehlo.token) -> (tensor<8xf32>, !stablehlo.token) {
  %0:2 = stablehlo.optimization_barrier %x, %t : tensor<8xf32>, !stablehlo.token                      // => [{"a"}] ; []
  return %0#0, %0#1 : tensor<8xf32>, !stablehlo.token                                                 // => [{"a"}] ; -
}
// ---- Manual computation: manual axes go away inside and come back outside
sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2]>
func.func @main(
    %x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}, {?}]>}) -> tensor<8x8xf32> { // => [{"a", "b"}, {}]
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"a", ?}, {?}]>] out_shardings=[<@mesh, [{"a", ?}, {?}]>] manual_axes={"a"} (%y: tensor<4x8xf32>) {
    %1 = stablehlo.tanh %y : tensor<4x8xf32>                                                          // => [{"b"}, {}]
    sdy.return %1 : tensor<4x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>                                                            // => [{"a", "b"}, {}] ; [{"a", "b"}, {}]
  %2 = stablehlo.negate %0 : tensor<8x8xf32>                                                          // => [{"a", "b"}, {}]
  return %2 : tensor<8x8xf32>                                                                         // => [{"a", "b"}, {}]
}
// ---- Manual computation: from the inside out, and backwards
sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2]>
func.func @main(
    %x: tensor<8x8xf32>) -> tensor<8x8xf32> {                                                         // => [{"a", "b"}, {}]
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"a", ?}, {?}]>] out_shardings=[<@mesh, [{?}, {"a", ?}]>] manual_axes={"a"} (%y: tensor<4x8xf32>) {
    %1 = stablehlo.tanh %y : tensor<4x8xf32>                                                          // => [{"b"}, {}]
    %2 = sdy.sharding_constraint %1 <@mesh, [{"b"}, {?}]> : tensor<4x8xf32>                           // => [{"b"}, {}]
    %3 = stablehlo.reshape %2 : (tensor<4x8xf32>) -> tensor<8x4xf32>                                  // => [{"b"}, {}]
    sdy.return %3 : tensor<8x4xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>                                                            // => [{"a", "b"}, {}] ; [{"b"}, {"a"}]
  return %0 : tensor<8x8xf32>                                                                         // => [{"b"}, {"a"}]
}
// ---- Import: manual axes that a sharding does not use are not used later
sdy.mesh @mesh = <["c"=2, "a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "c"}, {"b"}]>}) -> tensor<8x8xf32> { // => [{"a", "c"}, {"b"}]
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"a", ?}, {?}]>] out_shardings=[<@mesh, [{"a", ?}, {?}]>] manual_axes={"c", "a"} (%y: tensor<4x8xf32>) {
    %1 = stablehlo.tanh %y : tensor<4x8xf32>                                                          // => [{}, {"b"}]
    sdy.return %1 : tensor<4x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>                                                            // => [{"a"}, {"b"}] ; [{"a"}, {"b"}]
  return %0 : tensor<8x8xf32>                                                                         // => [{"a"}, {"b"}]
}
// ---- Named computation: as a manual one without manual axes; the edges are written out, which Shardy's import does
// passes: sdy-user-priority-propagate
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>}) -> (                     // => [{"a"}, {"b", ?}]
    tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b"}]>}) {
  %0 = sdy.named_computation<"block">(%x) (%y: tensor<8x8xf32>) {
    %e = sdy.data_flow_edge %y : tensor<8x8xf32>                                                      // => [{"a", ?}, {"b", ?}]
    %1 = stablehlo.tanh %e : tensor<8x8xf32>                                                          // => [{"a", ?}, {"b", ?}]
    sdy.return %1 : tensor<8x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = sdy.data_flow_edge %0 : tensor<8x8xf32>                                                        // => [{"a", ?}, {"b", ?}]
  return %2 : tensor<8x8xf32>                                                                         // => [{"a", ?}, {"b"}]
}
// ---- Functions: a copy per call, so that two calls do not tie each other
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>},                          // => [{"a"}, {}]
    %y: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b"}]>}) -> (tensor<8x8xf32>, tensor<8x8xf32>) { // => [{}, {"b"}]
  %0 = func.call @f(%x) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = func.call @f(%y) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>                                                    // => [{"a"}, {}] ; [{}, {"b"}]
}
func.func private @f(%z: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.negate %z : tensor<8x8xf32>                                                          // => [{"a"}, {}] | [{}, {"b"}]
  return %0 : tensor<8x8xf32>
}
// ---- Functions: shardings of a function's arguments and results hold at each call
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x8xf32>) -> tensor<8x8xf32> {                                                         // => [{"a"}, {"b"}]
  %0 = func.call @f(%x) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.tanh %0 : tensor<8x8xf32>                                                            // => [{"a"}, {"b"}]
  return %1 : tensor<8x8xf32>                                                                         // => [{"a"}, {"b"}]
}
func.func private @f(%z: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b", ?}]>}) {
  %0 = stablehlo.negate %z : tensor<8x8xf32>                                                          // => [{"a"}, {"b"}]
  return %0 : tensor<8x8xf32>
}
// ---- User priorities: an edge's value keeps its sharding as it is, whatever its priority
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x8xf32>) -> tensor<8x8xf32> {                                                         // => [{"a"}, {}]
  %0 = "stablehlo.optimization_barrier"(%x) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}p1, {?}]>]>} : (tensor<8x8xf32>) -> tensor<8x8xf32> // => [{"a"}, {}]
  %1 = sdy.sharding_constraint %0 <@mesh, [{?}, {"a"}]> : tensor<8x8xf32>                             // => [{}, {"a"}]
  return %1 : tensor<8x8xf32>                                                                         // => [{}, {"a"}]
}
// ---- Data flow edges, case: branches that disagree tell nothing
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %i: tensor<i32>,
    %x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>},                          // => [{"a"}, {}]
    %y: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {?}]>}) -> tensor<8x8xf32> {     // => [{"b"}, {}]
  %0 = "stablehlo.case"(%i) ({
    stablehlo.return %x : tensor<8x8xf32>
  }, {
    stablehlo.return %y : tensor<8x8xf32>
  }) : (tensor<i32>) -> tensor<8x8xf32>                                                               // => -
  return %0 : tensor<8x8xf32>                                                                         // => -
}
// ---- Data flow edges: regions in regions
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>},                          // => [{"a"}, {"b"}]
    %p: tensor<i1>, %i: tensor<i32>) -> (
    tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b"}]>}) {
  %0:2 = stablehlo.while(%u = %x, %q = %p) : tensor<8x8xf32>, tensor<i1>
  cond {
    stablehlo.return %q : tensor<i1>
  } do {
    %1 = "stablehlo.case"(%i) ({
      %2 = stablehlo.tanh %u : tensor<8x8xf32>                                                        // => [{"a"}, {"b"}]
      stablehlo.return %2 : tensor<8x8xf32>
    }, {
      stablehlo.return %u : tensor<8x8xf32>
    }) : (tensor<i32>) -> tensor<8x8xf32>                                                             // => [{"a"}, {"b"}]
    stablehlo.return %1, %q : tensor<8x8xf32>, tensor<i1>
  }
  return %0#0 : tensor<8x8xf32>                                                                       // => [{"a"}, {"b"}]
}
// ---- Manual computation: all axes manual, nothing passes through
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>}) -> tensor<8x8xf32> {     // => [{"a"}, {}]
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"b", ?}, {?}]>] out_shardings=[<@mesh, [{?}, {"b", ?}]>] manual_axes={"a", "b"} (%y: tensor<4x8xf32>) {
    %1 = stablehlo.reshape %y : (tensor<4x8xf32>) -> tensor<8x4xf32>                                  // => -
    sdy.return %1 : tensor<8x4xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>                                                            // => [{"b"}, {}] ; [{}, {"b"}]
  %2 = stablehlo.tanh %0 : tensor<8x8xf32>                                                            // => [{}, {"b"}]
  return %2 : tensor<8x8xf32>                                                                         // => [{}, {"b"}]
}
// ---- Functions: one that calls another
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(
    %x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>}) -> tensor<8x8xf32> {     // => [{"a"}, {}]
  %0 = func.call @g(%x) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>                                                                         // => [{"a"}, {}]
}
func.func private @f(%z: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.transpose %z, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>                   // => [{"a"}, {}] | [{}, {"a"}]
  return %0 : tensor<8x8xf32>
}
func.func private @g(%z: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = func.call @f(%z) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = func.call @f(%0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = stablehlo.negate %1 : tensor<8x8xf32>                                                          // => [{"a"}, {}]
  return %2 : tensor<8x8xf32>
}
