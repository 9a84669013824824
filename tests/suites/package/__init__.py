"""The wheel, installed in clean environments outside the checkout."""
