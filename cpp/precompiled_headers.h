// SPDX-License-Identifier: Apache-2.0
#pragma once

// The headers of the standard library that most sources include: cpp/CMakeLists.txt compiles them once for all libraries.
// A source still includes what it uses; `tools/check_includes.py` compiles each without these.
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>
