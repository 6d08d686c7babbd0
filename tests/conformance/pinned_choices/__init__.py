# SPDX-License-Identifier: Apache-2.0
"""Pinned choices give a local program of the same ops on meshes of other sizes; see __main__."""
