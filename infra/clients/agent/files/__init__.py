"""The reader of local files, confined to allowed root folders."""
