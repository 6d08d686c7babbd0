// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/place.h"

namespace shardwise {

// IPython calls a cell "Cell In[3]" and its tracebacks say "Cell In[3], line 2".
std::string_view separator_of_line(std::string_view file) { return file.starts_with("Cell In[") ? ", line " : ":"; }

std::string place_text(const std::string& file, int32_t line) {
  if (file.empty()) return {};
  return std::string(file).append(separator_of_line(file)).append(std::to_string(line));
}

}  // namespace shardwise
