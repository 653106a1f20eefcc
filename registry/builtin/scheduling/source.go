package scheduling

import "embed"

// source holds this package's files, whose comments document the kinds.
//
//go:embed *.go
var source embed.FS
