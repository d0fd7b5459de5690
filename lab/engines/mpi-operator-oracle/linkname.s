// Empty on purpose: with an assembly file, Go accepts functions without a body, as `sync` in main.go is one.
