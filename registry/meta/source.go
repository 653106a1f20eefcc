package meta

import (
	"embed"
	"io/fs"
)

//go:embed *.go
var source embed.FS

// Source returns the Go files whose comments document the types that kinds are
// made of.
func Source() fs.FS { return source }
