# SPDX-License-Identifier: Apache-2.0
"""Random programs that read and write at known places: equal numbers, and no more bytes than their bound.

    python -m tests.conformance.known_places --programs 50 --seed 7
    python -m tests.conformance.known_places --seed 7 --show "rows:12"

``--programs`` is for each family. The tool exits with 1 if a program is wrong or sends more.
"""

from __future__ import annotations

import os
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")

from tests.conformance.known_places.checking import run
from tests.conformance.known_places.programs import FAMILIES

if __name__ == "__main__":
    sys.exit(run(FAMILIES, __doc__))
