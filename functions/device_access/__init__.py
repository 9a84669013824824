"""Device authentication: IoT Core invokes these functions on connect and on provisioning."""
