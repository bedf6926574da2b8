"""What runs a program: call by call, or planned, as a machine of steps in one arena."""
