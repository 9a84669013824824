"""The mutation run: what it changes, and that it leaves out no condition of a write."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from infra.prepare import ROOT
from tests.suites.mutation.copies import MutantFinder
from tests.suites.mutation.mutants import has_condition, mutants_of
from tests.suites.mutation.subjects import MODULES, TESTS

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

SOURCE = '''"""A module."""

LIMIT = 5


def guard(numbers, other=None):
    """Refuse what is over the limit."""
    if not numbers or len(numbers) > LIMIT:
        raise ValueError("too many")
    try:
        store(condition="attribute_not_exists(pk) OR expires_at <= :now")
    except KeyError:
        return False
    return numbers[0] == other
'''


def test_each_guard_has_its_mutants() -> None:
    always, never = (
        "attribute_exists(pk) OR attribute_not_exists(pk)",
        "attribute_exists(pk) AND attribute_not_exists(pk)",
    )
    changes = {(mutant.old, mutant.new) for mutant in mutants_of(SOURCE)}
    assert changes >= {
        ("5", "6"),
        ("not numbers or len(numbers) > LIMIT", "(not numbers)"),
        ("not numbers or len(numbers) > LIMIT", "(len(numbers) > LIMIT)"),
        ("not numbers", "(numbers)"),
        ("len(numbers) > LIMIT", "len(numbers) >= LIMIT"),
        ('raise ValueError("too many")', "pass"),
        ("KeyError", "()"),
        ("return False", "return True"),
        ("numbers[0] == other", "numbers[0] != other"),
        ("attribute_not_exists(pk)", f"(attribute_not_exists(pk) OR {always})"),
        ("attribute_not_exists(pk)", f"(attribute_not_exists(pk) AND {never})"),
        ("expires_at <= :now", f"(expires_at <= :now OR {always})"),
    }


def test_mutants_are_valid_and_have_different_names() -> None:
    mutants = mutants_of(SOURCE)
    assert len({mutant.name for mutant in mutants}) == len(mutants)
    for mutant in mutants:
        changed = mutant.applied(SOURCE)
        assert changed != SOURCE
        compile(changed, "mutant", "exec")
        assert mutant.old in SOURCE.splitlines()[mutant.line - 1]


def test_constants_are_noticed_by_all_tests_of_the_module() -> None:
    assert [mutant.old for mutant in mutants_of(SOURCE) if mutant.at_import] == ["5"]


def test_every_module_with_a_condition_is_mutated() -> None:
    """So every condition expression has a test in which another caller acts just before its write."""
    files = [file for folder in ("functions", "shared") for file in (ROOT / folder).rglob("*.py")]
    texts = {str(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in files}
    conditional = {
        name for name, text in texts.items() if re.search("condition|attribute_", text) and has_condition(text)
    }
    assert len(conditional) > 15
    assert conditional <= set(MODULES)


def test_subjects_and_their_tests_exist() -> None:
    assert len(set(MODULES)) == len(MODULES)
    assert not [path for path in (*MODULES, *TESTS) if not (ROOT / path).exists()]


def test_mutated_module_is_imported_and_its_file_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "mutated_subject.py"
    file.write_text("LIMIT = 5\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", [MutantFinder("mutated_subject", file, "LIMIT = 6\n"), *sys.meta_path])
    with monkeypatch.context() as patched:
        patched.delitem(sys.modules, "mutated_subject", raising=False)
        import mutated_subject  # type: ignore[import-not-found]

        assert mutated_subject.LIMIT == 6
        patched.delitem(sys.modules, "mutated_subject")
    assert file.read_text() == "LIMIT = 5\n"
