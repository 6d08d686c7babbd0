# SPDX-License-Identifier: Apache-2.0
"""``python -m shardwise``: the command line of :mod:`shardwise.cli`."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
