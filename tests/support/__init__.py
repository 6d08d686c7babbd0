# SPDX-License-Identifier: Apache-2.0
"""What tests of several themes use."""
