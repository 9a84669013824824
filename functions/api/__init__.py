"""Framework of the functions: handlers, HTTP events, authentication, error formats and MCP."""

from functools import cache

from shared.platform.runtime import FunctionClient, runtime


@cache
def _lambda_client() -> FunctionClient:
    from shared.aws.lambda_client import LambdaClient

    return LambdaClient()


runtime.lambda_client = _lambda_client
