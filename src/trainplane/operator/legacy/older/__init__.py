"""Objects of the older shape, handed down: the shell around `legacy.older`, which says what they become.

TrainJob, runtimes of v2alpha1 ─► reconcilers ─► handing ─► today's objects, which they own
today's TrainJob ─► its status ─► back

mirrors      the older objects, as the API server has them
assembly     what of all this runs: the kinds that the Configuration names
"""
