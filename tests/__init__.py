# SPDX-License-Identifier: Apache-2.0
"""All tests, by theme: each folder tries one part of what Shardwise does."""
