# SPDX-License-Identifier: Apache-2.0
"""The partitioner: axes, regions, options and stages, golden texts of the passes, collectives, random programs."""
