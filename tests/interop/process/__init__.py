# SPDX-License-Identifier: Apache-2.0
"""Programs from and to JAX."""
