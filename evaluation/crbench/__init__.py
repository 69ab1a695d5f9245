"""CR-Bench: pull requests that brought a bug in, replayed through the live reviewer, judged by CR-Evaluator.

Construction (Algorithm 1): ``mapping`` finds the lines that a fix takes away, who wrote them, and the one pull
request that this was; ``task`` asks a model whether a review could have prevented the bug, and holds the result;
``context`` restores what its reviewer saw; ``build`` runs it all. ``own`` takes the fixes from a repository's own
history, ``golden`` takes other benchmarks' review comments.

Replay and judging: ``bench``, ``judge``, ``judged``, ``metrics``; told by ``sections`` beside the figures in
``paper``.
"""
