"""Building what is deployed, and deploying it to an emulator of AWS on this machine."""
