# SPDX-License-Identifier: Apache-2.0
"""sw.optim against Optax."""
