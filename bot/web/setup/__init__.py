"""Set-up in the browser: a GitHub App registered from our manifest, without editing a file."""
