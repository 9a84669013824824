"""`make sam`: the template as SAM transforms, validates and builds it."""
