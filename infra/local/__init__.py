"""The local server: the template on one machine, with every service embedded."""
