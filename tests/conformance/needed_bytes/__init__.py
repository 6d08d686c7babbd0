# SPDX-License-Identifier: Apache-2.0
"""Random programs of the kinds that other compilers gather for, with the bytes that they need."""
