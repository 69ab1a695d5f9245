"""Invert a passing test: negate its last assertion about the buggy version. Pure.

A model that cannot write a failing test can often write a passing one that shows the wrong behaviour. With its
last assertion inverted, it fails exactly while the bug exists (the idea of AssertFlip).
"""

from __future__ import annotations

import libcst as cst

from bot.reproduction.python.draft import parse

_OPPOSITES = {
    "assertEqual": "assertNotEqual",
    "assertTrue": "assertFalse",
    "assertIs": "assertIsNot",
    "assertIsNone": "assertIsNotNone",
    "assertIn": "assertNotIn",
    "assertIsInstance": "assertNotIsInstance",
    "assertGreater": "assertLessEqual",
    "assertLess": "assertGreaterEqual",
    "assertAlmostEqual": "assertNotAlmostEqual",
    "assertRegex": "assertNotRegex",
}
_OPPOSITES |= {negative: positive for positive, negative in _OPPOSITES.items()}


def invert(code: str) -> str | None:
    """Return the code with the last assertion of its first test inverted, or None without an assertion.

    Supports ``assert``, unittest's comparisons and ``with pytest.raises(...)``, which is replaced by its body so
    that the exception fails the test. Raises DraftRejected.
    """
    module = parse(code)
    finder = _Find()
    module.visit(finder)
    if finder.last is None:
        return None
    changed = module.visit(_Turn(finder.last))
    assert isinstance(changed, cst.Module)
    return changed.code


class _Find(cst.CSTVisitor):
    """Visitor that finds the last assertion of the first test function."""

    def __init__(self) -> None:
        super().__init__()
        self.last: cst.CSTNode | None = None
        self._depth = 0
        self._is_complete = False

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        if self._depth == 0 and (self._is_complete or not node.name.value.startswith("test")):
            return False
        self._depth += 1
        return True

    def leave_FunctionDef(self, original_node: cst.FunctionDef) -> None:
        if original_node.name.value.startswith("test") and self._depth > 0:
            self._depth -= 1
            self._is_complete = self._depth == 0

    def visit_Assert(self, node: cst.Assert) -> None:
        self._remember(node)

    def visit_Call(self, node: cst.Call) -> None:
        if isinstance(node.func, cst.Attribute) and node.func.attr.value in _OPPOSITES:
            self._remember(node)

    def visit_With(self, node: cst.With) -> None:
        if _expects_exception(node):
            self._remember(node)

    def _remember(self, node: cst.CSTNode) -> None:
        if self._depth:
            self.last = node


class _Turn(cst.CSTTransformer):
    def __init__(self, target: cst.CSTNode) -> None:
        super().__init__()
        self._target = target

    def leave_Assert(self, original_node: cst.Assert, updated_node: cst.Assert) -> cst.Assert:
        if original_node is not self._target:
            return updated_node
        return updated_node.with_changes(
            test=_negated(updated_node.test), whitespace_after_assert=cst.SimpleWhitespace(" ")
        )

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        if original_node is not self._target:
            return updated_node
        assert isinstance(updated_node.func, cst.Attribute)
        name = cst.Name(_OPPOSITES[updated_node.func.attr.value])
        return updated_node.with_changes(func=updated_node.func.with_changes(attr=name))

    def leave_With(
        self, original_node: cst.With, updated_node: cst.With
    ) -> cst.With | cst.FlattenSentinel[cst.BaseStatement]:
        if original_node is not self._target or not isinstance(updated_node.body, cst.IndentedBlock):
            return updated_node
        return cst.FlattenSentinel(updated_node.body.body)


def _negated(test: cst.BaseExpression) -> cst.BaseExpression:
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return test.expression
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        only = test.comparisons[0]
        opposite = _OPERATORS.get(type(only.operator))
        if opposite is not None:
            return test.with_changes(comparisons=[only.with_changes(operator=opposite)])
    bare = test.with_changes(lpar=[], rpar=[]) if test.lpar else test
    return cst.UnaryOperation(cst.Not(), bare.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()]))


_OPERATORS: dict[type[cst.BaseCompOp], cst.BaseCompOp] = {
    cst.Equal: cst.NotEqual(),
    cst.NotEqual: cst.Equal(),
    cst.Is: cst.IsNot(),
    cst.IsNot: cst.Is(),
    cst.In: cst.NotIn(),
    cst.NotIn: cst.In(),
}


def _expects_exception(node: cst.With) -> bool:
    if len(node.items) != 1 or node.items[0].asname is not None or not isinstance(node.items[0].item, cst.Call):
        return False
    called = cst.Module(body=[]).code_for_node(node.items[0].item.func)
    return called in ("pytest.raises", "self.assertRaises", "raises")
