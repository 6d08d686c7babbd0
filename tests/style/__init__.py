# SPDX-License-Identifier: Apache-2.0
"""Rules of the code base that tests check."""
