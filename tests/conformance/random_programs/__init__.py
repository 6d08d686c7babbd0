# SPDX-License-Identifier: Apache-2.0
"""Random programs on random meshes against the unpartitioned run; see __main__."""
