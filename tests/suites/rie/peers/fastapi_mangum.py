"""FastAPI under Mangum."""

from typing import Annotated, Literal

from fastapi import FastAPI, Request  # type: ignore[import-not-found]
from mangum import Mangum
from peers.storing import append  # type: ignore[import-not-found]
from pydantic import BaseModel, Field

app = FastAPI()


class AddMessage(BaseModel):
    """A message, and the conversation that it belongs to."""

    conversation_id: Annotated[str, Field(min_length=1, max_length=200)]
    role: Literal["user", "assistant", "system"]
    content: Annotated[str, Field(min_length=1, max_length=262_144)]


@app.post("/memory-server/memory/add_message")  # type: ignore[untyped-decorator]
def add_message(message: AddMessage, request: Request) -> dict[str, str]:
    """Append one message."""
    tenant_id = request.scope["aws.event"]["requestContext"]["authorizer"]["lambda"]["tenant_id"]
    append(tenant_id, message.conversation_id, message.role, message.content)
    return {"status": "success", "conversation_id": message.conversation_id}


handler = Mangum(app, lifespan="off")
