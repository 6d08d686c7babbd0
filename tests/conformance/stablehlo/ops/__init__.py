# SPDX-License-Identifier: Apache-2.0
"""Random instances of every op, run by ``Module.run`` and by XLA:CPU. See ``__main__``."""
