"""The Python client that openapi-generator has written: a list, and the typed error of an unknown document."""

import os

from openapi_client import AgentDataApi, AgentDataListAncestorsRequest, ApiClient, Configuration
from openapi_client.exceptions import NotFoundException

api = AgentDataApi(ApiClient(Configuration(host=os.environ["KHO_URL"])))
print([each.document_id for each in api.agent_data_list_children().children])
try:
    api.agent_data_list_ancestors(AgentDataListAncestorsRequest(document_id="nope"))
except NotFoundException as error:
    print(error.data.error.code, error.data.error.guidance)
