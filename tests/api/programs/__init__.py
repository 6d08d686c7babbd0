# SPDX-License-Identifier: Apache-2.0
"""Traced programs as objects: pickles, arrays that they hold, annotations that they discard."""
