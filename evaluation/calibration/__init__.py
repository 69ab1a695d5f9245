"""Thresholds and probability maps, fitted on some repositories and tested on the others."""
