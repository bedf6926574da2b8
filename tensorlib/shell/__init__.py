"""Names under which scripts look for what is elsewhere here, or not there at all.

The modules of this folder are those of the package itself: `tensorlib/shell/cuda` is
`tensorlib.cuda`. Nothing imports them as parts of `tensorlib.shell`, where a second copy would
have settings of its own; that they are files of this folder is for readers and type checkers.
"""

import sys

from tensorlib._core.base.importing import OtherNames

FOLDER, __path__ = __path__, []


class Elsewhere(OtherNames):
    """Finds packages of other parts of the library, which PyTorch has beside those."""

    homes = {"tensorlib.data": "tensorlib.utils.data", "tensorlib.fx": "tensorlib.program.fx"}


sys.meta_path.insert(0, Elsewhere)
