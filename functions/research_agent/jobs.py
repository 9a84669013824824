"""Ingestion jobs of the caller's tenant."""

from research_agent.stores import knowledge_table
from shared.knowledge.ingestion_jobs import IngestionJobs
from shared.rpc.caller import Caller


def jobs(caller: Caller) -> IngestionJobs:
    """Return the ingestion jobs of the caller's tenant."""
    return IngestionJobs(knowledge_table(), caller.tenant_id)
