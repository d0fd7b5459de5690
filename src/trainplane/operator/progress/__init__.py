"""Progress that pods report, from the request to the TrainJob's status.

    POST …/trainjobs/NAME/status ─► server ─► callers   is it a pod of this very TrainJob?
                                       │
                                       ├─► report    what the request says, judged by the CRD's own rules
                                       └─► reports   kept, and written at most every ten seconds for each TrainJob
    GET …/trainjobs/NAME/training ─► training   how training stands, for the pod that asks
    certificates ─► authority          running TrainJobs trust the operator's new authority before it is used
    TrainJob mirror ─► history         the last points of each metric, in a ConfigMap that goes with the TrainJob

Wire format, route, codes and field manager are the reference's, so its clients report here unchanged. Every replica
serves, on a port of its own; nothing but the API server's state is shared between replicas.
"""
