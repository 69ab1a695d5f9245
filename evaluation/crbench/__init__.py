"""CR-Bench: pull requests that brought a bug in, replayed through the live reviewer, judged by CR-Evaluator.

Construction (Algorithm 1): ``fix`` finds the lines that a fix takes away, ``blame`` who wrote them,
``history`` (with ``subjects`` and ``inference``) which pull request that was, ``mapping`` keeps instances
with exactly one; ``steps`` asks a model whether a review could have prevented the bug, ``context`` restores
what its reviewer saw, ``build`` runs it all. ``own`` takes the fixes from a repository's own history,
``golden`` takes other benchmarks' review comments. ``git`` reads clones that nobody vouches for.

Replay: ``staging`` opens the pull request on a ``past`` that holds nothing later. Judging: ``judge``,
``metrics``, ``judged``; shown by ``printing`` and ``report`` beside the figures in ``paper``.
"""
