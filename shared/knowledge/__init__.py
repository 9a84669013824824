"""Finding passages: by their meaning, by their words, by both."""
