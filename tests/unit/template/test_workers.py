"""Triggers of workers, retention of failed records, and resources that survive the stack."""

from __future__ import annotations

from collections import Counter

from infra.local.template import load
from tests.helpers.template import (
    BY_NAME,
    LAMBDAS,
    METERING,
    RESOURCES,
    actions,
    all_table_actions,
    function_name,
    managed_policies,
    statements,
)


def test_rules_have_dead_letter_queues() -> None:
    rules = {
        name: each["Properties"]["TopicRulePayload"]
        for name, each in RESOURCES.items()
        if each["Type"] == "AWS::IoT::TopicRule"
    }
    allowed = [each["Properties"] for each in RESOURCES.values() if each["Type"] == "AWS::Lambda::Permission"]
    assert rules
    for name, rule in rules.items():
        assert rule["ErrorAction"]["Sqs"]["QueueUrl"] == {"Ref": "DeadLetters"}
        [action] = rule["Actions"]
        [permission] = [each for each in allowed if each["SourceArn"] == {"Fn::GetAtt": [name, "Arn"]}]
        assert permission["FunctionName"] == action["Lambda"]["FunctionArn"]
        assert permission["SourceAccount"] == {"Ref": "AWS::AccountId"}


def test_workers_have_dead_letter_queues() -> None:
    streams = [
        event["Properties"]
        for properties in LAMBDAS.values()
        for event in properties.get("Events", {}).values()
        if event["Type"] == "DynamoDB"
    ]
    assert streams
    for stream in streams:
        # SAM grants the function access to that destination only if the type is given.
        destination = {"Type": "SQS", "Destination": {"Fn::GetAtt": ["DeadLetters", "Arn"]}}
        assert stream["DestinationConfig"]["OnFailure"] == destination
        assert stream["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
        assert stream["BisectBatchOnFunctionError"] is True
        # The function counts attempts: Lambda would count those that a service did not answer too.
        assert stream["MaximumRetryAttempts"] == -1
        assert 3600 <= stream["MaximumRecordAgeInSeconds"] <= 86_400


def test_stream_workers_count_attempts_and_send_letters() -> None:
    for worker in {each.function for each in load().streams}:
        _, properties = BY_NAME[worker]
        assert properties["Environment"]["Variables"]["KHO_DEAD_LETTERS"] == {"Ref": "DeadLetters"}
        assert METERING in all_table_actions(worker)
        assert "sqs:SendMessage" in {action for each in statements(properties) for action in actions(each)}


def test_events_of_devices_wait_for_hours_and_are_tried_three_times() -> None:
    """A fleet that comes back exceeds the instances of its functions for minutes; no connection is lost by that."""
    invoked = {rule.function for rule in load().rules}
    configured = {
        function_name(each): each["EventInvokeConfig"] for each in LAMBDAS.values() if "EventInvokeConfig" in each
    }
    assert set(configured) == invoked
    destination = {"Type": "SQS", "Destination": {"Fn::GetAtt": ["DeadLetters", "Arn"]}}
    for name, each in configured.items():
        assert each["MaximumRetryAttempts"] == 2
        assert each["MaximumEventAgeInSeconds"] == 21_600
        assert each["DestinationConfig"]["OnFailure"] == destination
        _, properties = BY_NAME[name]
        sending = [each for each in statements(properties) if "sqs:SendMessage" in actions(each)]
        assert [each["Resource"] for each in sending] == [{"Fn::GetAtt": ["DeadLetters", "Arn"]}]


def test_ingestions_of_tenants_run_side_by_side() -> None:
    """A record of the stream is kept for a day, so that an ingestion may wait for others of its tenant."""
    [worker] = [each for each in load().streams if each.function == "workers-ingest"]
    assert worker.record_age == 86_400
    _, properties = BY_NAME["workers-ingest"]
    assert properties["Events"]["Work"]["Properties"]["ParallelizationFactor"] == 10


def test_functions_with_the_search_index_have_a_whole_processor() -> None:
    memory = {
        function_name(each): each.get("MemorySize", 512)
        for each in LAMBDAS.values()
        if "QdrantKeyAccess" in managed_policies(each)
    }
    assert len(memory) > 10
    assert set(memory.values()) == {1769}


def test_streams_have_at_most_two_consumers() -> None:
    readers = Counter(each.table for each in load().streams)
    assert max(readers.values()) <= 2, readers


def test_index_workers_retry_for_the_recovery_time() -> None:
    waiting = [each for each in load().streams if each.function.startswith("workers-index_")]
    assert {each.function for each in waiting} >= {"workers-index_documents", "workers-index_knowledge"}
    for each in waiting:
        assert 3600 <= each.record_age < 86_400, "what a stream has lost by then is a dead letter before"


def test_ttl_deletion_of_a_generation_triggers_purge() -> None:
    """A slow writer's item after the first purge is removed by the second, which the purge item's expiry triggers."""
    purging = next(each for each in load().streams if each.function == "workers-purge_messages")
    assert purging.filters[0]["eventName"] == ["INSERT", "REMOVE"]
    memory = next(each for each in load().tables if each.name == purging.table)
    assert memory.expiry_attribute == "expires_at"


def test_tables_are_retained() -> None:
    tables = {name: each for name, each in RESOURCES.items() if each["Type"] == "AWS::DynamoDB::Table"}
    limits = tables.pop("LimitsTable")  # its buckets are full again within minutes
    assert limits["DeletionPolicy"] == limits["UpdateReplacePolicy"] == "Delete"
    assert tables
    for table in tables.values():
        assert table["UpdateReplacePolicy"] == "Retain"
        assert table["DeletionPolicy"] == "RetainExceptOnCreate"
        assert table["Properties"]["DeletionProtectionEnabled"] == {"Ref": "DeletionProtection"}
        assert table["Properties"]["BillingMode"] == "PAY_PER_REQUEST"
        assert table["Properties"]["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"]
        assert "SSESpecification" not in table["Properties"], "a key that DynamoDB owns costs nothing"
