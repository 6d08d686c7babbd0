# SPDX-License-Identifier: Apache-2.0
"""Products that run in blocks, and the windows of ops along split dims."""
