"""Workers: what runs because something changed, not because somebody called."""
