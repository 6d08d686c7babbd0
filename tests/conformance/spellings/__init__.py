# SPDX-License-Identifier: Apache-2.0
"""Random programs in several spellings, which send the same bytes; see __main__."""
