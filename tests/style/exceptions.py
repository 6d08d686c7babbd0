# SPDX-License-Identifier: Apache-2.0
"""The only exceptions to the size limits, each with its reason. At most five."""

FUNCTIONS: dict[str, str] = {}  # "path:function" → reason
FILES: dict[str, str] = {}  # path → reason
MAX_EXCEPTIONS = 5
