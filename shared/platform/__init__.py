"""Needs of every function that no subject owns: time, threads, caches, HTTP, settings, logs."""
