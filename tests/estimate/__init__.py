# SPDX-License-Identifier: Apache-2.0
"""How long a step takes: the schedule, its reports, and what is known of models and machines."""
