// Package experiments holds one file per experiment: the question, the method, what would change
// our mind, and its settings. Plain "go test ./experiments" runs the experiment backends; the
// others run when they are named with -run. The environment variables of package spec override
// what an experiment sets.
package experiments
