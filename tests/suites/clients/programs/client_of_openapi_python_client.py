"""The client that openapi-python-client has written: a list, and the typed error of an unknown document."""

import os

from generated import Client
from generated.api.agent_data import agent_data_list_ancestors, agent_data_list_children
from generated.models import AgentDataListAncestorsBody, AgentDataListChildrenBody

with Client(base_url=os.environ["KHO_URL"]) as client:
    children = agent_data_list_children.sync(client=client, body=AgentDataListChildrenBody())
    print([each.document_id for each in children.children])
    failure = agent_data_list_ancestors.sync(client=client, body=AgentDataListAncestorsBody("nope"))
    print(failure.error.code, failure.error.guidance)
