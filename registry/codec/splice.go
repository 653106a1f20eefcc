package codec

import (
	"bytes"
	"encoding/json"
	"strconv"
)

const (
	metadataHead = `"metadata":{`
	versionHead  = `{"apiVersion":"`
)

// Splice appends stored bytes (see EncodeStored) with metadata.resourceVersion
// put in, the first field of the metadata.
func Splice(dst, stored []byte, resourceVersion int64) []byte {
	// A quote inside a string is escaped, so the first match is the field.
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

// Reversion appends stored or spliced bytes with another apiVersion at the
// head, for a served version whose objects are otherwise the same.
func Reversion(dst, stored []byte, apiVersion string) []byte {
	if !bytes.HasPrefix(stored, []byte(versionHead)) {
		return append(dst, stored...)
	}
	end := len(versionHead)
	for end < len(stored) && stored[end] != '"' {
		if stored[end] == '\\' {
			end++
		}
		end++
	}
	dst = append(dst, versionHead[:len(versionHead)-1]...)
	dst = appendString(dst, apiVersion)
	return append(dst, stored[min(end+1, len(stored)):]...)
}

// Indent appends JSON with two spaces for each level, one field or item to a
// line, and a final line break.
func Indent(dst, data []byte) []byte {
	var b bytes.Buffer
	if err := indent(&b, data); err != nil {
		return append(dst, data...)
	}
	return append(append(dst, b.Bytes()...), '\n')
}

func indent(b *bytes.Buffer, data []byte) error { return json.Indent(b, data, "", "  ") }
