"""A folder that `install()` puts on `sys.path`: processes that multiprocessing starts anew get nothing else."""
