"""What every room may use: no input or output, nothing of the other rooms."""
