"""Commands for those who work on tensorlib: what is generated from the live package."""
