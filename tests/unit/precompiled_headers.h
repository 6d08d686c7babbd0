// SPDX-License-Identifier: Apache-2.0
#pragma once

// The headers that most C++ tests include, compiled once for all of them.
#include <gtest/gtest.h>

#include "../../cpp/precompiled_headers.h"
