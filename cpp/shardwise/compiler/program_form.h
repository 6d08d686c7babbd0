// SPDX-License-Identifier: Apache-2.0
//
// Which form a program is in (Form, pass.h), from what it holds: a text does not say which passes it has behind it.
//
//   Program program{.module = parse(text, context)};
//   check_form(kLocalize.name, kLocalize.takes, program);
//   // ShardingError: localize: the program must have been through assign and plan_reshards, got stablehlo.add from
//   //                [{"x"}], [{}] to [{"x"}]; run assign and plan_reshards first (at train.py:31)
//
// The passes to run are those of the pipeline that make the forms which are missing (Pass::makes).
#pragma once

#include <string_view>

#include "shardwise/ir/pass.h"

namespace shardwise {

// ShardingError, with `what` as its subject, and the place that shows it, for a program in none of these forms.
void check_form(std::string_view what, const FormRange& takes, const Program& program);

}  // namespace shardwise
