"""The mutants of a module: one small change each, as a replacement of a piece of its source."""

from __future__ import annotations

import ast
import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_COMPARISONS: Final = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}
_CLAUSE: Final = re.compile(r"attribute_(?:not_)?exists\([#\w]+\)|#?\b\w+ (?:=|<>|<=?|>=?) :\w+")
"""A comparison in a condition of DynamoDB. In an update expression, it follows SET or a comma."""
_ALWAYS: Final = "attribute_exists(pk) OR attribute_not_exists(pk)"
_NEVER: Final = "attribute_exists(pk) AND attribute_not_exists(pk)"
_OTHER_SIGN: Final = str.maketrans("+-", "-+")
_EXCHANGED: Final = {"min": "max", "max": "min", "fullmatch": "match", "all": "any", "any": "all"}
_WITHOUT_EFFECT: Final = re.compile(r"logger\.|count\(|warnings\.")
"""Calls that no promise to clients is about."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A replacement of the source from `begin` to `end`, and the lines of which a test must run one to notice it."""

    kind: str
    scope: str
    begin: int
    end: int
    old: str
    new: str
    line: int
    lines: range
    at_import: bool
    occurrence: int = 1

    @property
    def name(self) -> str:
        """The mutant's name, which stays when lines are added elsewhere."""
        new = self.new.replace(_ALWAYS, "always").replace(_NEVER, "never")
        old, new = (" ".join(text.split()) for text in (self.old, new))
        repeated = f" #{self.occurrence}" if self.occurrence > 1 else ""
        return f"{self.scope}: {old} -> {new}{repeated}"

    def applied(self, source: str) -> str:
        """Return the source with the mutation."""
        return source[: self.begin] + self.new + source[self.end :]


def mutants_of(source: str) -> list[Mutant]:
    """Return the mutants of a module that are valid Python, in the order of its lines."""
    seen: Counter[str] = Counter()
    valid = []
    for mutant in sorted(_Finder(source).mutants(), key=lambda each: (each.begin, each.end, each.new)):
        try:
            compile(mutant.applied(source), "mutant", "exec")
        except SyntaxError:
            continue
        seen[mutant.name] += 1
        valid.append(replace(mutant, occurrence=seen[mutant.name]))
    return valid


def has_condition(source: str) -> bool:
    """Return True if a module has a condition of a write, without making all its mutants."""
    return any(mutant.kind == "condition" for mutant in _Finder(source).mutants())


class _Finder:
    """Walks the syntax tree of one module."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._lines = source.splitlines()

    def mutants(self) -> Iterator[Mutant]:
        """Iterate over all mutants, valid or not."""
        yield from self._walk(ast.parse(self._source), "module", None, at_import=True)

    def _walk(self, node: ast.AST, scope: str, statement: ast.stmt | None, *, at_import: bool) -> Iterator[Mutant]:
        """Iterate over the mutants of a node and those below, within a statement of a function or class."""
        for child in ast.iter_child_nodes(node):
            inside = statement
            if isinstance(child, ast.stmt):
                if _is_untested(child):
                    continue
                inside = child
            below = scope
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                below = child.name if scope == "module" else f"{scope}.{child.name}"
            elif inside is not None:
                for kind, begin, end, new in self._replacements(child):
                    yield self._mutant(kind, scope, (begin, end), new, (inside, at_import))
            if isinstance(node, ast.arguments | ast.AnnAssign) and child is getattr(node, "annotation", None):
                continue
            is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            yield from self._walk(child, below, inside, at_import=at_import and not is_function)

    def _mutant(self, kind: str, scope: str, piece: tuple[int, int], new: str, place: tuple[ast.stmt, bool]) -> Mutant:
        begin, end = piece
        first = self._source.count("\n", 0, begin) + 1
        last = self._source.count("\n", 0, end) + 1
        statement, at_import = place
        # A statement without a body runs as a whole, but the tracer may name any of its lines.
        body = getattr(statement, "body", None)
        lines = range(first, last + 1) if body else range(statement.lineno, (statement.end_lineno or last) + 1)
        return Mutant(kind, scope, begin, end, self._source[begin:end], new, first, lines, at_import)

    def _replacements(self, node: ast.AST) -> Iterator[tuple[str, int, int, str]]:  # noqa: C901, PLR0912 - one case an operator
        match node:
            case ast.Compare():
                yield from self._comparisons(node)
            case ast.BoolOp():
                for operand in node.values:
                    rest = [self._text(each) for each in node.values if each is not operand]
                    joined = (" and " if isinstance(node.op, ast.And) else " or ").join(rest)
                    yield "operand", *self._span(node), f"({joined})"
            case ast.UnaryOp(op=ast.Not()):
                yield "not", *self._span(node), f"({self._text(node.operand)})"
            case ast.Raise():
                yield "raise", *self._span(node), "pass"
            case ast.Constant(value=bool()) | ast.Constant(value=None):
                pass
            case ast.Constant(value=int() | float() as number):
                yield "constant", *self._span(node), repr(number + 1)
            case ast.Constant(value=str()) | ast.JoinedStr():
                yield from self._clauses(node)
            case ast.Return(value=ast.Constant(value=bool() as answer)):
                yield "return", *self._span(node), f"return {not answer}"
            case ast.Return(value=ast.Constant(value=None)):
                pass
            case ast.Return(value=ast.expr()):
                yield "return", *self._span(node), "return None"
            case ast.ExceptHandler(type=ast.expr() as caught):
                yield "except", *self._span(caught), "()"
            case ast.Call(func=ast.Name(id="suppress")) if node.args:
                yield "except", *self._span(node), "suppress()"
            case ast.Call(func=ast.Name(id=name) as function) if name in _EXCHANGED:
                yield "function", *self._span(function), _EXCHANGED[name]
            case ast.Attribute(attr="fullmatch"):
                _, end = self._span(node)
                yield "function", end - len("fullmatch"), end, "match"
            case ast.BinOp(op=ast.Add() | ast.Sub()) if _is_arithmetic(node):
                sign = self._source[self._span(node.left)[1] : self._span(node.right)[0]].translate(_OTHER_SIGN)
                yield "sign", *self._span(node), self._text(node.left) + sign + self._text(node.right)
            case ast.Expr(value=ast.Call() | ast.Await()) if not _WITHOUT_EFFECT.match(self._text(node)):
                yield "call", *self._span(node), "pass"
            case ast.If(test=test) | ast.IfExp(test=test) if isinstance(test, ast.Name | ast.Attribute | ast.Call):
                yield "branch", *self._span(test), f"(not {self._text(test)})"

    def _comparisons(self, node: ast.Compare) -> Iterator[tuple[str, int, int, str]]:
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            old, new = _COMPARISONS[type(operator)]
            begin, end = self._span(left)[0], self._span(right)[1]
            sign = self._source[self._span(left)[1] : self._span(right)[0]].replace(old, new, 1)
            yield "comparison", begin, end, self._text(left) + sign + self._text(right)
            left = right

    def _clauses(self, node: ast.expr) -> Iterator[tuple[str, int, int, str]]:
        """Iterate over weakened conditions: with a clause that always holds, or an alternative that never does."""
        begin, end = self._span(node)
        text = self._source[begin:end]
        for clause in _CLAUSE.finditer(text):
            before = text[: clause.start()].rstrip()
            if before.endswith(("SET", ",", "CREATE", "WHERE")) or "SELECT" in text or text.startswith('"""'):
                continue
            here = begin + clause.start(), begin + clause.end()
            yield "condition", *here, f"({clause[0]} OR {_ALWAYS})"
            if " OR " in text:
                yield "condition", *here, f"({clause[0]} AND {_NEVER})"

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._offset(node.lineno, node.col_offset), self._offset(node.end_lineno, node.end_col_offset)

    def _offset(self, line: int, column: int) -> int:
        """Return the place in the text of a column, which counts bytes."""
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())

    def _text(self, node: ast.expr | ast.stmt) -> str:
        begin, end = self._span(node)
        return self._source[begin:end]


def _is_untested(statement: ast.stmt) -> bool:
    """Return True for docstrings, imports, assertions, and what is for type checkers alone."""
    match statement:
        case ast.Expr(value=ast.Constant(value=str())) | ast.Import() | ast.ImportFrom() | ast.Assert():
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
    return False


def _is_arithmetic(node: ast.BinOp) -> bool:
    return not any(
        isinstance(each, ast.Constant | ast.JoinedStr | ast.List | ast.Tuple | ast.ListComp | ast.Dict)
        and not (isinstance(each, ast.Constant) and isinstance(each.value, int | float))
        for each in (node.left, node.right)
    )
