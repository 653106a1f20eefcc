// Package codec turns bytes into object trees and back: JSON, YAML and
// protobuf, the framing of watch events, media types and views.
//
// A tree is made of map[string]any, []any, string, bool, int64, float64 and
// nil. Stored bytes are the canonical JSON that EncodeStored writes; they leave
// metadata.resourceVersion out, Splice puts it in.
package codec
