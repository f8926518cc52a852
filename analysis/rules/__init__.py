"""The twelve rules of Hoefler and Belli (Scientific Benchmarking of Parallel Computing Systems, SC'15), checked."""
