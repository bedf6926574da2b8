"""State of the library that a user sets or adds to."""


class Registry(dict):
    """A dict of the library to which users can add entries, by a name or a class. A captured
    function is captured anew if an entry that it looked up has changed.

    Caches, whose entries can be computed again, are ordinary dicts.
    """

    __slots__ = ()
