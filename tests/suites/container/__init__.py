"""The container image's steps, in a root of debootstrap instead of Docker."""
