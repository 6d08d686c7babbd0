# SPDX-License-Identifier: Apache-2.0
"""Derivatives of single ops."""
