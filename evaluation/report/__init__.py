"""Reports that benchmarks share: sections of text, tables and figures, as one HTML page, Markdown or JSON."""
