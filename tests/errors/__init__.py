# SPDX-License-Identifier: Apache-2.0
"""Every error that a user can meet: its class, its message and its line."""
