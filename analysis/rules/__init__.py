"""The twelve rules of T. Hoefler and R. Belli (Scientific Benchmarking of Parallel Computing Systems, SC'15), checked."""
