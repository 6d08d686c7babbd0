# SPDX-License-Identifier: Apache-2.0
"""Random programs whose ops read and write at places that are known, or as far as they are known."""
