# SPDX-License-Identifier: Apache-2.0
"""Modules, the stages of a program, and the options, rules and choices that it is compiled with."""
