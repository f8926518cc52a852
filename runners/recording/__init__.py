"""Recordings of a program's MPI calls, and what is replayed from them."""
