package codec

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
)

const (
	metadataHead = `"metadata":{`
	versionHead  = `{"apiVersion":"`
)

// Splice appends stored bytes (see EncodeStored) with metadata.resourceVersion inserted as the
// first field of the metadata.
func Splice(dst, stored []byte, resourceVersion int64) []byte {
	// Quotes inside strings are escaped, so that the first match is the field.
	i := bytes.Index(stored, []byte(metadataHead))
	if i < 0 {
		return append(dst, stored...)
	}
	i += len(metadataHead)
	dst = append(dst, stored[:i]...)
	dst = append(dst, `"resourceVersion":"`...)
	dst = strconv.AppendInt(dst, resourceVersion, 10)
	dst = append(dst, '"')
	if i < len(stored) && stored[i] != '}' {
		dst = append(dst, ',')
	}
	return append(dst, stored[i:]...)
}

// Unsplice appends the stored bytes that Splice was called with, given its result and the
// resourceVersion.
func Unsplice(dst, spliced []byte, resourceVersion int64) []byte {
	var room [64]byte
	field := strconv.AppendInt(append(room[:0], metadataHead+`"resourceVersion":"`...), resourceVersion, 10)
	before, after, found := bytes.Cut(spliced, append(field, '"'))
	if !found {
		return append(dst, spliced...)
	}
	dst = append(append(dst, before...), metadataHead...)
	return append(dst, bytes.TrimPrefix(after, []byte(","))...)
}

// CutHead splits canonical JSON before its metadata: head has the opening brace, apiVersion and
// kind, rest the remainder. Both share memory with object.
func CutHead(object []byte) (head, rest []byte) {
	i := max(bytes.Index(object, []byte(metadataHead)), min(1, len(object)))
	return object[:i], object[i:]
}

// Indent appends JSON with an indentation of two spaces, each field or item on a line, and a
// final line break. Invalid JSON is appended unchanged.
func Indent(dst, data []byte) []byte {
	b := bytes.NewBuffer(slices.Grow(dst, len(data)+len(data)/2))
	if err := json.Indent(b, data, "", "  "); err != nil {
		return append(dst, data...)
	}
	b.WriteByte('\n')
	return b.Bytes()
}
