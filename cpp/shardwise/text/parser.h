// SPDX-License-Identifier: Apache-2.0
//
// StableHLO text with sdy attributes to a Module: what `print` prints, what `jax.jit(f).lower(...).as_text()` prints
// (with and without debug_info), and MLIR's generic form of both.
//
//   auto context = std::make_shared<Context>();
//   Module module = parse("func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }",
//   context); module.main().body;                              // the region with the argument %x
//
//   parse("func.func @main() { %0 = foo.bar }", context);
//   // ParseError: 1:28: program text: an op must be one that shardwise knows, got 'foo.bar'
//
// Every op is made through Builder, so the types in the text are checked; shardings must fit their tensors, and their
// meshes must be declared above. Whatever is wrong is a ParseError with line and column. Terminators become
// Region::results. Not kept, since nothing here reads them: attributes of modules, meshes and functions, and those of
// arguments and function results other than shardings (jax.result_info, tf.aliasing_output, …). mhlo.sharding, the form
// of older partitioners, is refused rather than dropped.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "shardwise/ir/module.h"
#include "shardwise/text/parse_options.h"

namespace shardwise {

Module parse(std::string_view text, std::shared_ptr<Context> context, const ParseOptions& options = {});

}  // namespace shardwise
