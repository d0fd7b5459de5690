"""Where TrainJobs run: one folder per backend, each an implementation of `backend.Backend`."""
