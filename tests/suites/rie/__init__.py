"""Functions as Lambda runs them: the real runtime under its real emulator, each function with its own layers."""
