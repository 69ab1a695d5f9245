"""Six layers of test generation from bug reports, after Bloom's taxonomy.

Source: Qureshi and Jiang, Test Case Generation from Bug Reports via Large Language Models: A Cognitive Layered
Evaluation Framework, section 3. Each layer is a module: what it changes about the cases, and what it measures. The
drafting itself is always ``bouncer-eval replay brt``, on the cases that a layer built.
"""

#: What reports are translated into, chosen because it needs no other script (section 3.2).
LANGUAGE = "Romanized Urdu"
