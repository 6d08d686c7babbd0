# SPDX-License-Identifier: Apache-2.0
"""Random programs that need few bytes: equal numbers, and no more bytes than their bound.

    python -m tests.conformance.needed_bytes --programs 50 --seed 7
    python -m tests.conformance.needed_bytes --seed 7 --show "heads:12"

``--programs`` is for each family. The tool exits with 1 if a program is wrong or sends more.
"""

from __future__ import annotations

import os
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")

from tests.conformance.known_places.checking import run
from tests.conformance.needed_bytes.movements import MOVEMENTS
from tests.conformance.needed_bytes.programs import FAMILIES

if __name__ == "__main__":
    sys.exit(run({**FAMILIES, **MOVEMENTS}, __doc__))
