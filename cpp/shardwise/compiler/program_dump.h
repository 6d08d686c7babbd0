// SPDX-License-Identifier: Apache-2.0
//
// Writes programs to files, for compiler developers. With SHARDWISE_DUMP_DIR=/tmp/dump, the second program of a
// process, called jit_train, writes
//
//   /tmp/dump/0002_jit_train/00_trace.mlir, 01_inline_calls.mlir, 02_simplify.mlir, …
//
// and with SHARDWISE_LOG=2 also the program after each step of a pass: 03_propagate_04_split_constants.mlir.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "shardwise/ir/module.h"

namespace shardwise {

// A folder for the dumps of one compile; empty without SHARDWISE_DUMP_DIR.
std::filesystem::path new_dump_folder(const Module& module);

std::string numbered(int number, std::string_view name);  // 03_propagate

// Writes `module` to <folder>/<name>.mlir; does nothing when `folder` is empty.
void dump(const Module& module, const std::filesystem::path& folder, std::string_view name);

// Writes a program on which a pass failed, to `folder` or else to the temporary folder, and returns the path: empty or
// an exception if it cannot be written.
std::filesystem::path keep_for_report(const Module& module, const std::filesystem::path& folder, std::string_view pass);

}  // namespace shardwise
