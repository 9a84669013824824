"""The console: a static web application, and the programs that fetch its packages and bundle its files."""
