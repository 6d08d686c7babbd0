# SPDX-License-Identifier: Apache-2.0
"""NumPy's functions on traced values, against NumPy: one table of cases, in the dtypes of the table and in others."""
