"""Documents to types: what every backend shows of a TrainJob, read from TrainJob, Pod, Event and runtime documents.

All of it is pure. A backend has documents, whether an API server wrote them or a supervisor on this machine; that they
are read here, and only here, is why a job looks the same wherever it runs.

| module     | from                              | to                                                  |
|------------|-----------------------------------|-----------------------------------------------------|
| `runtimes` | a runtime                         | Runtime                                             |
| `jobs`     | a TrainJob and its pods           | TrainJob, with `status`, `steps` and `cause`        |
| `pods`     | a pod                             | its place, its phase, why it waits or how it ended  |
| `steps`    | pods                              | Steps: the newest pod of each place                 |
| `causes`   | a TrainJob, its pods, its events  | Cause: the first fault                              |
| `events`   | events of a namespace             | Events of one TrainJob, in the order of time        |
| `lines`    | a stamped line                    | LogLine                                             |
| `devices`  | a container's resources           | what computes, and how many                         |
| `moments`  | a time as Kubernetes writes it    | datetime                                            |

Documents may lack any part or have it of another type (`api.tree.get` answers None for what is not there): nothing
raises but `read_runtime`.
"""
