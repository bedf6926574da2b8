"""Running a program: call by call, or planned, as a list of steps on one arena of memory."""
