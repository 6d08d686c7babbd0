// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/run/program_run.h"

#include "shardwise/base/thread_pool.h"

namespace shardwise {

void ProgramRun::execute() {
  const InterruptScope interrupt(options_.between_ops);
  blocks_.run(plan_.main);
}

}  // namespace shardwise
