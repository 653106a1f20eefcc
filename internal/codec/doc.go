// Package codec turns bytes into object trees and back: JSON, YAML and
// protobuf, the framing of watch events, lists and tables.
//
// A tree is made of map[string]any, []any, string, bool, int64, float64 and
// nil. Stored bytes are the canonical JSON that EncodeStored writes; they leave
// metadata.resourceVersion out, Splice puts it in.
package codec
