// Package codec converts object trees to and from JSON, YAML and protobuf, and encodes watch
// events, lists and tables.
//
// A tree consists of map[string]any, []any, string, bool, int64, float64, nil and, for field
// sets, meta.RawJSON. Stored bytes are the canonical JSON of EncodeStored, without
// metadata.resourceVersion; Splice inserts it.
package codec
