# SPDX-License-Identifier: Apache-2.0
"""Reads the user's code: the line and the expression behind an op or an error, and where host code draws numbers."""
