"""Python: pytest functions and classes, unittest and Django test cases."""
