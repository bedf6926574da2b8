"""The intermediate representation: variables, calls and blocks, their text, files and pictures."""
