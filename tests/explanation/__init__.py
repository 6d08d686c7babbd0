# SPDX-License-Identifier: Apache-2.0
"""why(): where shardings come from, what was lost, and which annotation helps."""
