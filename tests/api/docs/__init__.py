# SPDX-License-Identifier: Apache-2.0
"""Pages, docstrings, notebooks and examples: their code runs, and prints what they show."""
