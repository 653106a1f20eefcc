package meta

import (
	"embed"
	"io/fs"
)

//go:embed objectmeta.go time.go quantity.go special.go labelselector.go condition.go
var source embed.FS

// Source returns the Go files whose comments document the types that kinds are
// made of.
func Source() fs.FS { return source }
