"""One machine: the template served with everything embedded."""
