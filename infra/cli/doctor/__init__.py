"""`kho doctor`: looks at a deployment, or at this machine's set-up, and says what to do."""
