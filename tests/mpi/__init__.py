# SPDX-License-Identifier: Apache-2.0
"""Programs on the ranks of an MPI job: the numbers of the virtual mesh, bit by bit, and clear messages for faults."""
