"""`kho` with access tokens that expire soon, but not before a slow machine has used them."""

from __future__ import annotations

from shared.access.oauth import grants
from tests.e2e import long_limits


def main() -> None:
    """Run the command line."""
    grants.ACCESS_SECONDS = 10  # type: ignore[misc]  # a constant in production, and of this process alone
    long_limits.main()


if __name__ == "__main__":
    main()
