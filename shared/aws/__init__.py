"""AWS protocols: signed requests, DynamoDB, Secrets Manager."""
