"""The limit of open files, and so of connections, of this process."""

from __future__ import annotations


def raise_open_files() -> None:
    """Raise the limit of open files to 65,536 or the system's hard limit. Each device's connection is one file."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
