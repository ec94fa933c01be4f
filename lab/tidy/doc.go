// Package tidy holds the rules that the build enforces, as tests: which package may import which,
// how long files and functions may be, and what libraries and tests must not call. Every message
// names the file, the rule and what to do instead.
package tidy
