"""Boards: their check-in and photos, and IoT Core's authorizer and provisioning hook."""
