# SPDX-License-Identifier: Apache-2.0
"""The examples with manual regions on the ranks of a job: each rank has its share of the devices.

mpirun -n 4 python -m tests.mpi.region_examples_worker
"""

from __future__ import annotations

import numpy as np

import shardwise as sw
from tests.support.region_examples import REGION_EXAMPLES


def main() -> None:
    ranks = sw.mpi.communicator()
    for name, make in REGION_EXAMPLES.items():
        example = make()
        found = example.compiled()(*example.arguments)
        results = [np.asarray(x) for x in (found if isinstance(found, (tuple, list)) else [found])]
        for got, wanted in zip(results, example.expected(), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)
        if ranks.rank == 0:
            print(f"{name} agrees on {ranks.size} ranks", flush=True)


if __name__ == "__main__":
    main()
