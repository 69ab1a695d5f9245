"""Invert a passing test: negate its last assertion about the buggy version. Pure.

A model that cannot write a failing test can often write a passing one that shows the wrong behaviour. With its
last assertion inverted, it fails exactly while the bug exists (the idea of AssertFlip).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import libcst as cst
import libcst.matchers as m

from bot.reproduction.python.draft import is_test, parse

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
_OPERATORS: dict[type[cst.BaseCompOp], cst.BaseCompOp] = {
    cst.Equal: cst.NotEqual(),
    cst.NotEqual: cst.Equal(),
    cst.Is: cst.IsNot(),
    cst.IsNot: cst.Is(),
    cst.In: cst.NotIn(),
    cst.NotIn: cst.In(),
}
_RAISES = (
    m.Name("raises")
    | m.Attribute(m.Name("pytest"), m.Name("raises"))
    | m.Attribute(m.Name("self"), m.Name("assertRaises"))
)
_ASSERTION = (
    m.Assert()
    | m.Call(m.Attribute(attr=m.Name(m.MatchIfTrue(_OPPOSITES.__contains__))))
    | m.With([m.WithItem(m.Call(_RAISES), asname=None)])
)


def invert(code: str) -> str | None:
    """Return the code with the last assertion of its first test inverted, or None without an assertion.

    Supports ``assert``, unittest's comparisons and ``with pytest.raises(...)``, which is replaced by its body so
    that the exception fails the test. Raises DraftRejected.
    """
    module = parse(code)
    test = next((node for node in m.findall(module, m.FunctionDef()) if is_test(node)), None)
    assertions: Sequence[cst.CSTNode] = m.findall(test, _ASSERTION) if test else ()
    if not assertions:
        return None
    changed = module.visit(_Inversion(assertions[-1]))
    assert isinstance(changed, cst.Module)
    return changed.code


class _Inversion(cst.CSTTransformer):
    def __init__(self, target: cst.CSTNode) -> None:
        super().__init__()
        self._target = target

    def on_leave(self, original_node: cst.CSTNodeT, updated_node: cst.CSTNodeT) -> Any:
        return _inverse(updated_node) if original_node is self._target else updated_node


def _inverse(node: cst.CSTNode) -> cst.CSTNode | cst.FlattenSentinel[cst.BaseStatement]:
    if isinstance(node, cst.Assert):
        return node.with_changes(test=_negated(node.test), whitespace_after_assert=cst.SimpleWhitespace(" "))
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        name = cst.Name(_OPPOSITES[node.func.attr.value])
        return node.with_changes(func=node.func.with_changes(attr=name))
    if isinstance(node, cst.With) and isinstance(node.body, cst.IndentedBlock):
        return cst.FlattenSentinel(node.body.body)
    return node


def _negated(test: cst.BaseExpression) -> cst.BaseExpression:
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return test.expression
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        comparison = test.comparisons[0]
        if opposite := _OPERATORS.get(type(comparison.operator)):
            return test.with_changes(comparisons=[comparison.with_changes(operator=opposite)])
    bare = test.with_changes(lpar=[], rpar=[]) if test.lpar else test
    return cst.UnaryOperation(cst.Not(), bare.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()]))
