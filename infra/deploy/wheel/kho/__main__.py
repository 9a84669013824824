"""`python -m kho`."""

from . import kho

kho()
