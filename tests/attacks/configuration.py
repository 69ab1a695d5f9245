"""Texts of ``.github/bouncer.yml``."""

from __future__ import annotations

_HUGE = "9" * 5000
_BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + at)}: &{chr(98 + at)} [{','.join([f'*{chr(97 + at)}'] * 9)}]\n" for at in range(9)
)

TABLE = {
    "a file stops the work of its repository": {
        "an alias of itself": "a: &a [*a]",
        "a billion words by aliases": _BOMB,
        "a key of another's by a merge": "a: &a {mode: 'off'}\ntriage:\n  <<: *a",
        "an anchor that nobody uses": "triage: &x {mode: comment}",
        "a truth value by a tag": "triage:\n  mode: !!bool x",
        "a number by a tag": "review:\n  max_findings: !!int x",
        "a time by a tag": "triage:\n  label: !!timestamp x",
        "bytes by a tag": "triage:\n  label: !!binary x",
        "a set by a tag": "triage: !!set {a, b}",
        "pairs by a tag": "triage: !!omap [a: b]",
        "nested lists": "a: " + "[" * 20_000,
        "nested mappings": "{a: " * 5_000,
        "nested by indentation": "".join(" " * at + "a:\n" for at in range(300)),
        "a number of thousands of digits": f"review: {{max_findings: {_HUGE}}}",
        "a number below zero of thousands of digits": f"review: {{max_findings: -{_HUGE}}}",
        "no number": "review: {max_findings: .nan}",
        "endless": "review: {max_findings: .inf}",
        "a fraction without end": "review: {max_findings: 1e99999}",
        "a key that is a mapping": "? {a: b}\n: c",
        "a key that is a list": "? [a, b]\n: c",
        "a key that is nothing": "~: c\n'': d",
        "a key in capitals and accents": "TRIAGE: {}\ntriáge: {}\n\u202eegairt: {}",
        "the same key twice": "triage: {mode: label}\ntriage: {mode: comment}",
        "several documents": "---\ntriage: {}\n---\nreview: {}",
        "a version that does not exist": "%YAML 9.9\n---\ntriage: {}",
        "a list": "- triage",
        "a text": "triage",
        "control characters": 'triage:\n  label: "a\\0b\\x1b[2J"',
        "half a character": 'triage:\n  label: "\\ud800"',
        "a megabyte": "# " + "x" * (1 << 20),
        "ten thousand keys": "\n".join(f"k{number}: 1" for number in range(6_000)),
        "patterns that wait": "review:\n  ignore: ['" + "*a" * 400 + "b']",
        "not a pattern": "review:\n  ignore: ['!', '[']",
    },
    "a file runs something": {
        "a Python object": "triage: !!python/object/apply:os.system ['touch /tmp/bouncer-owned']",
        "a Python name": "triage: !!python/name:os.system",
        "a module": "triage: !!python/module:this",
        "a new object": "triage: !!python/object/new:os.system ['id']",
        "a class of another language": "triage: !ruby/object:Gem::Installer {i: x}",
    },
    "words of a file come alive in what is posted": {
        "a mention as a key": "'@octocat': 1",
        "a picture as a key": "'![x](https://evil.example/p.png)': 1",
        "a link as a key": "'[x](https://evil.example)': 1",
        "HTML as a key": "'<img src=x onerror=alert(1)>': 1",
        "a closing keyword as a key": "'Fixes #1': 1",
        "a marker as a key": "'<!-- bouncer:triage:v1 -->': 1",
        "a mention as a value": "triage: {mode: '@octocat'}",
        "a picture as a value": "triage: {mode: '![x](//evil.example)'}",
        "a block as a value": 'triage: {mode: "\\n```suggestion\\nx\\n```\\n"}',
        "a command as a key": '"\\n/bouncer accept\\n": 1',
        "a mention as a tag": "triage: !<@octocat> x",
        "a mention as an alias": "triage: *@octocat",
        "a key of the operator's": "'ghp_" + "a1B2" * 9 + "': 1",
    },
}

TABLES = (TABLE,)
