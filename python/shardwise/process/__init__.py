# SPDX-License-Identifier: Apache-2.0
"""Modules that import no other of the package: tracebacks, processes, and tables that later modules fill."""
