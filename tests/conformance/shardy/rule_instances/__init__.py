# SPDX-License-Identifier: Apache-2.0
"""Random instances of every op, whose sharding rules are compared with Shardy's."""
