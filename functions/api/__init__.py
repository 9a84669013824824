"""Framework of the functions: handlers, HTTP events, authentication, error formats and MCP."""

from shared.aws.lambda_client import LambdaClient
from shared.platform.runtime import runtime

runtime.lambda_client = LambdaClient()
