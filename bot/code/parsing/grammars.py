"""The languages whose files are parsed: the node types of their grammars, and patterns of lines that define names.

A language whose files are parsed is a ``Grammar`` here. If it has a family or a name of its own, it has a file in
``symbols/languages`` too, for what the grammar does not say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

#: A larger file is data or generated, and not parsed; bytes.
MAX_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Grammar:
    """A language: the package of its grammar, and the node types of its definitions.

    ``heads`` maps nodes that start before the definition in them (decorators, ``export``) to its field. ``owners``
    maps nodes that name a function value to the fields of value and name. ``calls`` are calls that take functions.
    """

    name: str
    endings: tuple[str, ...]
    functions: frozenset[str]
    classes: frozenset[str]
    defines: str
    """A pattern of lines that define a name, with NAMES for it. It may match more lines, but misses few."""
    heads: Mapping[str, str] = field(default_factory=dict, hash=False)
    owners: Mapping[str, tuple[str, str]] = field(default_factory=dict, hash=False)
    calls: frozenset[str] = frozenset()
    comments: frozenset[str] = frozenset({"comment", "line_comment", "block_comment"})
    strings: frozenset[str] = frozenset({"string", "string_literal", "interpreted_string_literal", "char_literal"})
    values: frozenset[str] = frozenset()
    """Nodes that define a value, unless they are in a function."""
    imports: frozenset[str] = frozenset()
    scopes: frozenset[str] = frozenset()
    """Nodes besides functions in which parameters and variables hold, from where they are declared to the end."""
    blocks: frozenset[str] = frozenset()
    """Those of the scopes in which a variable holds only behind its declaration."""
    binds: Mapping[str, tuple[str, str]] = field(default_factory=dict, hash=False)
    """Nodes that declare parameters and variables: the fields of the names and of the value, or an empty text."""
    loops: frozenset[str] = frozenset()
    """Those of them whose value is a container, of which the variable is an element."""
    updates: frozenset[str] = frozenset()
    """Nodes that set a variable which is declared before, by the fields ``left`` and ``right``."""
    family: str = ""
    """The languages that can name each other's definitions, if there are others."""
    package: str = ""
    """The name of its package after ``tree_sitter_``, if it is not ``name``."""
    maker: str = "language"
    compares: bool = True
    """True if equal trees mean equal code: not in C, whose preprocessor reads lines."""


PYTHON = Grammar(
    "python",
    (".py", ".pyi"),
    functions=frozenset({"function_definition"}),
    classes=frozenset({"class_definition"}),
    heads={"decorated_definition": "definition"},
    values=frozenset({"assignment"}),
    imports=frozenset({"import_statement", "import_from_statement"}),
    defines=r"\b(?:def|class)[ \t]+NAMES\b|^[ \t]*(?:self\.)?NAMES[ \t]*[:=]",
    scopes=frozenset(
        {"lambda", "list_comprehension", "set_comprehension", "dictionary_comprehension", "generator_expression"}
    ),
    binds={
        "parameters": ("", ""), "lambda_parameters": ("", ""), "typed_parameter": ("", ""),
        "default_parameter": ("name", "value"), "typed_default_parameter": ("name", "value"),
        "assignment": ("left", "right"), "augmented_assignment": ("left", ""), "for_statement": ("left", "right"),
        "for_in_clause": ("left", "right"), "named_expression": ("name", "value"), "as_pattern": ("alias", ""),
        "case_pattern": ("", ""),
    },
    loops=frozenset({"for_statement", "for_in_clause"}),
)  # fmt: skip
_SCRIPT_OWNERS = {
    "variable_declarator": ("value", "name"),
    "assignment_expression": ("right", "left"),
    "pair": ("value", "key"),
}
_JAVASCRIPT = Grammar(
    "javascript",
    (".js", ".jsx", ".mjs", ".cjs"),
    functions=frozenset(
        {"function_declaration", "function_expression", "generator_function", "generator_function_declaration",
         "method_definition", "arrow_function"}
    ),
    classes=frozenset({"class_declaration", "class"}),
    heads={"export_statement": "declaration"},
    owners={**_SCRIPT_OWNERS, "field_definition": ("value", "property")},
    calls=frozenset({"call_expression"}),
    values=frozenset({"variable_declarator", "field_definition", "pair", "assignment_expression"}),
    imports=frozenset({"import_statement", "export_statement"}),
    scopes=frozenset({"statement_block", "for_statement", "for_in_statement", "catch_clause", "switch_body"}),
    blocks=frozenset({"statement_block", "switch_body"}),
    binds={
        "formal_parameters": ("", ""), "arrow_function": ("parameter", ""), "catch_clause": ("parameter", ""),
        "lexical_declaration": ("", ""), "variable_declaration": ("", ""), "for_in_statement": ("left", "right"),
    },
    loops=frozenset({"for_in_statement"}),
    updates=frozenset({"assignment_expression"}),
    defines=(
        r"\b(?:function\*?|class|interface|type|enum|const|let|var|namespace)[ \t]+NAMES\b|\.NAMES[ \t]*="
        r"|^[ \t]*(?:(?:export|default|static|async|public|private|protected|readonly|get|set|abstract)[ \t]+)*"
        r"[$#]?NAMES[ \t]*[(<:=?]"
    ),
    family="script",
)  # fmt: skip
_TYPESCRIPT = replace(
    _JAVASCRIPT,
    name="typescript",
    endings=(".ts", ".mts", ".cts"),
    functions=_JAVASCRIPT.functions | {"function_signature", "method_signature"},
    classes=_JAVASCRIPT.classes
    | {"abstract_class_declaration", "interface_declaration", "enum_declaration", "internal_module", "module",
       "type_alias_declaration"},
    owners={**_SCRIPT_OWNERS, "public_field_definition": ("value", "name")},
    values=frozenset(
        {"variable_declarator", "public_field_definition", "pair", "property_signature", "enum_assignment",
         "required_parameter", "optional_parameter"}
    ),
    scopes=_JAVASCRIPT.scopes | {"function_type", "constructor_type"},
    binds={
        **_JAVASCRIPT.binds,
        "required_parameter": ("pattern", "value"),
        "optional_parameter": ("pattern", "value"),
    },
    maker="language_typescript",
)  # fmt: skip
_TSX = replace(_TYPESCRIPT, name="tsx", endings=(".tsx",), package="typescript", maker="language_tsx")
_GO = Grammar(
    "go",
    (".go",),
    functions=frozenset({"function_declaration", "method_declaration", "func_literal", "method_elem"}),
    classes=frozenset({"type_spec", "type_alias"}),
    calls=frozenset({"call_expression"}),
    values=frozenset({"const_spec", "var_spec", "field_declaration"}),
    imports=frozenset({"import_spec", "package_clause"}),
    scopes=frozenset(
        {"block", "if_statement", "for_statement", "expression_switch_statement", "type_switch_statement",
         "communication_case", "expression_case", "type_case", "default_case", "function_type"}
    ),
    blocks=frozenset({"block", "expression_case", "type_case", "default_case"}),
    binds={
        "parameter_declaration": ("name", ""), "variadic_parameter_declaration": ("name", ""),
        "short_var_declaration": ("left", "right"), "var_spec": ("name", "value"), "const_spec": ("name", "value"),
        "range_clause": ("left", "right"), "receive_statement": ("left", ""),
        "type_switch_statement": ("alias", ""),
    },
    loops=frozenset({"range_clause"}),
    updates=frozenset({"assignment_statement"}),
    defines=(
        r"\bfunc[ \t]*(?:\([^()\n]*\))?[ \t]*NAMES\b|\b(?:type|const|var)[ \t]+NAMES\b"
        r"|^[ \t]+NAMES[ \t]+[^ \t=:.]"
    ),
)  # fmt: skip
_JAVA = Grammar(
    "java",
    (".java",),
    functions=frozenset({"method_declaration", "constructor_declaration", "compact_constructor_declaration"}),
    classes=frozenset(
        {"class_declaration", "interface_declaration", "enum_declaration", "record_declaration",
         "annotation_type_declaration"}
    ),
    values=frozenset({"field_declaration", "constant_declaration", "enum_constant"}),
    imports=frozenset({"import_declaration", "package_declaration"}),
    scopes=frozenset(
        {"block", "lambda_expression", "for_statement", "enhanced_for_statement", "catch_clause",
         "try_with_resources_statement", "switch_rule", "switch_block_statement_group"}
    ),
    blocks=frozenset({"block"}),
    binds={
        "formal_parameter": ("name", ""), "spread_parameter": ("", ""), "catch_formal_parameter": ("name", ""),
        "inferred_parameters": ("", ""), "lambda_expression": ("parameters", ""), "resource": ("name", "value"),
        "local_variable_declaration": ("declarator", ""), "enhanced_for_statement": ("name", "value"),
        "instanceof_expression": ("name", "right"), "type_pattern": ("", ""), "record_pattern_component": ("", ""),
    },
    loops=frozenset({"enhanced_for_statement"}),
    defines=(
        r"\b(?:class|interface|enum|record)[ \t]+NAMES\b|^[ \t]*[^\n;=()*/.]*[ \t>]NAMES[ \t]*[(;=,]"
        r"|^[ \t]*NAMES[ \t]*[(,;]"
    ),
)  # fmt: skip
_RUST = Grammar(
    "rust",
    (".rs",),
    functions=frozenset({"function_item", "function_signature_item", "macro_definition", "macro_invocation"}),
    classes=frozenset({"impl_item", "trait_item", "struct_item", "enum_item", "union_item", "mod_item"}),
    values=frozenset({"const_item", "static_item", "field_declaration", "enum_variant", "type_item"}),
    imports=frozenset({"use_declaration"}),
    scopes=frozenset(
        {"block", "closure_expression", "match_arm", "for_expression", "if_expression", "while_expression"}
    ),
    blocks=frozenset({"block"}),
    binds={
        "parameter": ("pattern", ""), "closure_parameters": ("", ""), "let_declaration": ("pattern", "value"),
        "let_condition": ("pattern", ""), "match_arm": ("pattern", ""), "for_expression": ("pattern", "value"),
    },
    loops=frozenset({"for_expression"}),
    updates=frozenset({"assignment_expression"}),
    defines=(
        r"\b(?:fn|struct|enum|trait|type|const|static|union|mod|macro_rules!)[ \t]+NAMES\b"
        r"|^[ \t]*(?:pub[^\n ]* )?NAMES[ \t]*[:,({=]"
    ),
)  # fmt: skip
_C = Grammar(
    "c",
    (".c", ".h"),
    functions=frozenset({"function_definition", "preproc_function_def"}),
    classes=frozenset({"struct_specifier", "union_specifier", "enum_specifier"}),
    values=frozenset({"preproc_def", "type_definition", "enumerator", "field_declaration", "declaration"}),
    imports=frozenset({"preproc_include"}),
    scopes=frozenset({"compound_statement", "for_statement"}),
    blocks=frozenset({"compound_statement"}),
    binds={"parameter_declaration": ("declarator", ""), "declaration": ("declarator", "")},
    updates=frozenset({"assignment_expression"}),
    compares=False,
    defines=(
        r"^[A-Za-z_][^\n;=(){}]*[ \t*]NAMES[ \t]*[(;=\[]|#[ \t]*define[ \t]+NAMES\b"
        r"|\b(?:struct|enum|union)[ \t]+NAMES[ \t]*\{|\}[ \t*]*NAMES[ \t]*;"
        r"|^[ \t]+[A-Za-z_][\w \t*]*[ \t*]NAMES[ \t]*[;:\[]|^[ \t]*NAMES[ \t]*(?:,|=[^=;]*,|$)"
    ),
)
_GRAMMARS = (PYTHON, _JAVASCRIPT, _TYPESCRIPT, _TSX, _GO, _JAVA, _RUST, _C)
_BY_ENDING = {ending: grammar for grammar in _GRAMMARS for ending in grammar.endings}
#: By family of languages: see ``Grammar.defines``.
DEFINES = {grammar.family or grammar.name: grammar.defines for grammar in _GRAMMARS}


def grammar_of(path: str) -> Grammar | None:
    """Return the grammar by the file's suffix, or None if there is none."""
    return _BY_ENDING.get(PurePosixPath(path).suffix.lower())


def family(path: str) -> str:
    """Return the languages that can name each other's definitions, or an empty text without a grammar."""
    grammar = grammar_of(path)
    return grammar.family or grammar.name if grammar is not None else ""


def compares(path: str) -> bool:
    """Return True if a file's ``fingerprint`` can be taken: its language has a grammar that tells its meaning."""
    grammar = grammar_of(path)
    return grammar is not None and grammar.compares
