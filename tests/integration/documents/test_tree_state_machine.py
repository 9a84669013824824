"""The sequential rules of the tree against a model of dictionaries, in random order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from shared.rpc.errors import KhoError
from tests.helpers.document_agent import DocumentAgent, assert_consistent_tree
from tests.helpers.size import sized

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = "root"


class Documents(RuleBasedStateMachine):
    """Documents in plain dictionaries, for one writer."""

    ids = Bundle("ids")

    def __init__(self) -> None:
        super().__init__()
        self.agent = DocumentAgent(f"tenant-{uuid4().hex}")
        self.parents: dict[str, str] = {}
        self.children: dict[str, list[str]] = {ROOT: []}
        self.deletions: dict[str, int] = {}
        self.last_deletion: dict[str, int] = {}
        self.bodies: dict[str, list[str]] = {}
        self.revisions: dict[str, int] = {}
        self.deletion = 0

    @initialize(target=ids)
    def root(self) -> str:
        return ROOT

    @rule(target=ids, parent=ids, body=st.text(max_size=20))
    def create(self, parent: str, body: str) -> str:
        name = f"d{len(self.parents)}"
        refused = self.unfit_parent(parent)
        self.expect(refused, "create_document", document_id=name, parent_id=parent, content={"body": body})
        if refused:
            return ROOT
        self.parents[name], self.children[name], self.bodies[name], self.revisions[name] = parent, [], [body], 1
        self.children[parent].append(name)
        return name

    @rule(document=ids, body=st.text(max_size=20), stale=st.booleans())
    def update(self, document: str, body: str, stale: bool) -> None:
        refused = self.hidden(document)
        known = self.revisions.get(document, 1) + stale
        if stale and not refused:
            refused = "CONFLICT"
        patch = {"content": {"body": body}}
        self.expect(refused, "update_document", document_id=document, patch=patch, last_known_revision=known)
        if not refused:
            self.bodies[document].append(body)
            self.revisions[document] += 1

    @rule(document=ids, parent=ids, ordering=st.none() | st.integers(0, 4), before=st.none() | ids)
    def move(self, document: str, parent: str, ordering: int | None, before: str | None) -> None:
        refused = self.hidden(document) or self.unfit_parent(parent)
        if not refused and document in self.path(parent):
            refused = "CYCLE"
        siblings = [each for each in self.children[parent] if each != document]
        if not refused and before is not None and (before not in self.children[parent] or before in self.deletions):
            refused = "NOT_FOUND"
        position: dict[str, Any] = {} if ordering is None else {"ordering": ordering}
        position |= {} if before is None else {"before": before}
        self.expect(refused, "move_document", document_id=document, new_parent_id=parent, position=position)
        if refused:
            return
        was = self.children[self.parents[document]]
        place = len(siblings)
        if before == document:
            place = was.index(document)
        elif before is not None:
            place = siblings.index(before)
        elif ordering is not None:
            visible = [each for each in siblings if each not in self.deletions]
            place = siblings.index(visible[ordering]) if ordering < len(visible) else len(siblings)
        was.remove(document)
        self.children[parent].insert(place, document)
        self.parents[document] = parent
        self.revisions[document] += 1

    @rule(document=ids, recursive=st.booleans())
    def delete(self, document: str, recursive: bool) -> None:
        refused = None if document in self.parents else "NOT_FOUND"
        has_children = any(child not in self.deletions for child in self.children.get(document, []))
        if not refused and document not in self.deletions and not recursive and has_children:
            refused = "HAS_CHILDREN"
        self.expect(refused, "delete_document", document_id=document, recursive=recursive)
        if refused or document in self.deletions:
            return
        self.deletion += 1
        for each in [document, *(self.below(document) if recursive else [])]:
            if each not in self.deletions:
                self.deletions[each] = self.last_deletion[each] = self.deletion
                self.revisions[each] += 1

    @rule(document=ids, recursive=st.booleans())
    def restore(self, document: str, recursive: bool) -> None:
        refused = None if document in self.parents else "NOT_FOUND"
        if not refused and document in self.deletions:
            refused = "PARENT_DELETED" if self.parents[document] in self.deletions else None
        self.expect(refused, "restore_document", document_id=document, recursive=recursive)
        if refused:
            return
        deletion = self.last_deletion.get(document)
        self.bring_back(document)
        level = [document] if recursive else []
        while level:
            following = []
            for parent in level:
                for child in self.children[parent]:
                    if self.deletions.get(child) == deletion and deletion is not None:
                        self.bring_back(child)
                    if child not in self.deletions:
                        following.append(child)
            level = following

    @invariant()
    def lists_are_in_order(self) -> None:
        for parent, children in self.children.items():
            if parent == ROOT or parent not in self.deletions:
                assert self.agent.children(parent) == [each for each in children if each not in self.deletions]

    def teardown(self) -> None:
        """Check the stored tree, and each revision of each document against the model."""
        positions = assert_consistent_tree(self.agent.tenant)
        assert {name: each.parent_id for name, each in positions.items()} == self.parents
        for name, bodies in self.bodies.items():
            if name not in self.deletions:
                document = self.agent.get(name)
                assert (document["content"]["body"], document["revision"]) == (bodies[-1], self.revisions[name])
                assert self.agent.get(name, revision=1)["content"]["body"] == bodies[0]

    def expect(self, code: str | None, method: str, **params: Any) -> None:
        """Call, and expect the model's result or error."""
        if code is None:
            self.agent(method, **params)
            return
        with pytest.raises(KhoError) as raised:
            self.agent(method, **params)
        assert raised.value.code == code

    def hidden(self, document: str) -> str | None:
        return "NOT_FOUND" if document not in self.parents or document in self.deletions else None

    def unfit_parent(self, parent: str) -> str | None:
        return "PARENT_DELETED" if parent in self.deletions else None

    def path(self, document: str) -> list[str]:
        """Return a document and its ancestors."""
        path = [document]
        while path[-1] != ROOT:
            path.append(self.parents[path[-1]])
        return path

    def below(self, document: str) -> list[str]:
        return [each for child in self.children[document] for each in (child, *self.below(child))]

    def bring_back(self, document: str) -> None:
        if self.deletions.pop(document, None) is not None:
            self.revisions[document] += 1


@pytest.mark.stress
def test_documents_behave_as_their_model(store: str, record_property: Callable[[str, object], None]) -> None:
    """The tree behaves as a model of dictionaries in any order of calls."""
    runs, steps = sized(5, full=100), 25
    run_state_machine_as_test(
        Documents,
        settings=settings(
            max_examples=runs, stateful_step_count=steps, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
    record_property("load", f"{runs} random runs of up to {steps} calls")
    record_property("outcome", "0 differences")
