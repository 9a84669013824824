"""What lets devices in: IoT Core asks here before it lets one connect, and before it gives one a certificate."""
