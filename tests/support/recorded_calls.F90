! For test_recorder.py: a ring of messages by mpif.h (77), `use mpi` (90) or `use mpi_f08` (8); with an argument a window.
program ring
#if BINDING == 8
  use mpi_f08
#elif BINDING == 90
  use mpi
#endif
  implicit none
#if BINDING == 77
  include 'mpif.h'
#endif
#if BINDING == 8
  type(MPI_Request) :: requests(2)
  type(MPI_Win) :: window
#else
  integer :: requests(2), window
#endif
  integer :: rank, ranks, code, total
  integer :: got(1000), sent(1000)
  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, code)
  sent = rank
  call MPI_Irecv(got, 1000, MPI_INTEGER, modulo(rank - 1, ranks), 7, MPI_COMM_WORLD, requests(1), code)
  call MPI_Isend(sent, 1000, MPI_INTEGER, modulo(rank + 1, ranks), 7, MPI_COMM_WORLD, requests(2), code)
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, code)
  total = rank
  call MPI_Allreduce(MPI_IN_PLACE, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
  if (command_argument_count() > 0) call MPI_Win_create(got, 4000_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, window, code)
  call MPI_Finalize(code)
end program
