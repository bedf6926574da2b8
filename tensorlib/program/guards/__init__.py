"""Signatures of calls, and guards of what a captured function read."""
