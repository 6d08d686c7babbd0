# SPDX-License-Identifier: Apache-2.0
"""How ops are computed: by time, as asked for, and what reports say of it."""
