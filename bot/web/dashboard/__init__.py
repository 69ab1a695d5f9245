"""The operator's pages: what was decided, why, what it cost, where it failed, and whether people agreed."""
