package node

import "context"

func sweepContainers(context.Context, Scope) ([]string, []error) { return nil, nil }
