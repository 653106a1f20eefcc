package core

import (
	"embed"
	"io/fs"
	"reflect"
)

// source holds this package's files, whose comments document the kinds.
//
//go:embed *.go
var source embed.FS

// Source returns the files whose comments document the types of this package,
// for kinds of other packages that hold them.
func Source() fs.FS { return source }

// Path returns the import path of the package.
func Path() string { return reflect.TypeFor[Pod]().PkgPath() }
