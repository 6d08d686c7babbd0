# SPDX-License-Identifier: Apache-2.0
"""Every op with every way to split each of its dims; see __main__."""
