// Package images holds the recipes of the images that the lab can make itself, for machines
// without a registry: one Dockerfile a program, and the entrypoint of the Cassandra image.
// Package setup renders the build contexts; nothing here is fetched while an image is built.
package images

import "embed"

// Files are the recipes: NAME.Dockerfile, and files they copy.
//
//go:embed *.Dockerfile *.sh
var Files embed.FS
