"""The programs of this folder are no tests of this process."""

collect_ignore = ["programs"]
