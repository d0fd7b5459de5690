module trainplane.dev/lab/engines/pause

go 1.26.0
