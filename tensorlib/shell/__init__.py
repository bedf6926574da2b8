"""Names under which scripts look for what is elsewhere here, or not there at all.

The modules of this folder are those of the package itself: `tensorlib/shell/cuda` is
`tensorlib.cuda`. Nothing imports them as parts of `tensorlib.shell`, where a second copy would
have settings of its own; that they are files of this folder is for readers and type checkers.
"""

FOLDER, __path__ = __path__, []
