"""Device access: IoT Core's authorizer and provisioning hook, and the endpoint where stock boards check in."""
