"""State of the library that a user sets or adds to."""


class Registry(dict):
    """What the library's code looks up by a name or a class, where a user may put something: a
    function that was captured is captured anew where it found something else.

    A dict that only keeps what can be computed again is none.
    """

    __slots__ = ()
