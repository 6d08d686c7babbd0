# SPDX-License-Identifier: Apache-2.0
"""Programs as text that are compiled and run, from Python and from the command line."""
