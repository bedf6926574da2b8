"""Whether anything looks at operations before they run: the one flag that every operation tests."""
