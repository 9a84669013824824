"""OAuth 2.1: the endpoints of the authorization server, its pages and its metadata."""
