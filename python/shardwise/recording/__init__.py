# SPDX-License-Identifier: Apache-2.0
"""Records the operations of a traced function: tracers, their methods, and prints."""
