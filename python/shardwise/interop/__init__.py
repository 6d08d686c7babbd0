# SPDX-License-Identifier: Apache-2.0
"""Objects of other libraries, read without importing these libraries."""
