# SPDX-License-Identifier: Apache-2.0
"""vjp, jvp, Jacobians, rules of the user, and the options of vmap."""
