// SPDX-License-Identifier: Apache-2.0
//
// Parses StableHLO text with sdy attributes into a Module: the output of `print`, the output of
// `jax.jit(f).lower(...).as_text()` (with and without debug_info), and MLIR's generic form of both.
//
//   auto context = std::make_shared<Context>();
//   Module module = parse("func.func @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }", context);
//   module.main().body;        // the region with the argument %x
//
//   parse("func.func @main() { %0 = foo.bar }", context);
//   // ParseError: 1:28: program text: an op must be one that shardwise knows, got 'foo.bar'
//
// Every op is created through Builder, which checks the types in the text. Shardings must fit their tensors, and the
// text must declare their meshes. Every error is a ParseError with line and column. Terminators become Region::results.
// The parser drops what no pass reads: attributes of modules, meshes and functions, and attributes of arguments and
// function results other than shardings (jax.result_info, tf.aliasing_output, …). An mhlo.sharding becomes a sharding
// of a mesh that the text implies (gspmd_sharding.h).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "shardwise/ir/module.h"
#include "shardwise/text/parse_options.h"

namespace shardwise {

Module parse(std::string_view text, std::shared_ptr<Context> context, const ParseOptions& options = {});

}  // namespace shardwise
