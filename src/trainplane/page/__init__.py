"""Pages for people who would rather look: a fleet, its jobs, one job, as HTML that works without a script.

    markup      pieces of HTML; every text passes one gate on its way in
    charts      a metric over time as a picture
    stages      when a TrainJob reached each stage of its life
    nodes       the steps of a TrainJob, two or thousands
    origins     where each field of a TrainJob's pods came from
    look        all that a page shows of one TrainJob, worked out once
    asking      one TrainJob asked of a cluster, for its page or its report
    job         the page of one TrainJob
    jobs        the list of TrainJobs
    fleet       clusters, queues and quota
    shell       what stands around each page; the report, one file for a mail or a ticket
    guard       who may ask the server, and what a browser may do with the answer
    following   log lines and changes of a TrainJob as they come, for a page that is open
    server      pages on this machine's loopback, with the caller's own credentials

What a page shows is a pure function of facts and of the time; only `asking`, `following` and `server` do I/O. What
others wrote, names, messages, logs and metrics, is an attack until it has passed `markup.tag`.
"""
