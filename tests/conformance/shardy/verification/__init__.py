# SPDX-License-Identifier: Apache-2.0
"""Wrong programs and texts, a row for each rule of Shardy, which refuses them too."""
