// SPDX-License-Identifier: Apache-2.0
//
// A source line as users write it. Cells of a notebook are written as in IPython:
//
//   place_text("train.py", 31)     // "train.py:31"
//   place_text("Cell In[2]", 6)    // "Cell In[2], line 6"
//   place_text("", 0)              // "": unknown
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace shardwise {

// The text between a file and a line: ":", or ", line " for a cell of a notebook.
std::string_view separator_of_line(std::string_view file);

std::string place_text(const std::string& file, int32_t line);

}  // namespace shardwise
