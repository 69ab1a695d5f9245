"""The only room that writes: decisions become what stands on GitHub."""
