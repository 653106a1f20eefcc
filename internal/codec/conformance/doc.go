// Package conformance proves the protobuf and JSON forms of package codec
// against the Go types that the field's clients use.
package conformance
