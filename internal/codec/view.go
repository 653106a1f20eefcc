package codec

import (
	"strconv"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
)

// ListMeta is the metadata of a list answer.
type ListMeta struct {
	ResourceVersion string // empty: of what has no versions
	Continue        string
	Remaining       *int64 // items after this page; nil: not told
	KeepContinue    bool   // an empty continue is written, as lists of custom kinds do
}

func (m ListMeta) append(dst []byte) []byte {
	dst = append(dst, '{')
	start := len(dst)
	if m.Continue != "" || m.KeepContinue {
		dst = appendString(appendKey(dst, start, "continue"), m.Continue)
	}
	if m.Remaining != nil {
		dst = strconv.AppendInt(appendKey(dst, start, "remainingItemCount"), *m.Remaining, 10)
	}
	if m.ResourceVersion != "" {
		dst = appendString(appendKey(dst, start, "resourceVersion"), m.ResourceVersion)
	}
	return append(dst, '}')
}

// ListHead appends a list up to its first item; items follow, joined by
// commas, and ListTail.
func ListHead(dst []byte, apiVersion, kind string, m ListMeta) []byte {
	dst = appendString(append(dst, versionHead[:len(versionHead)-1]...), apiVersion)
	dst = appendString(append(dst, `,"kind":`...), kind)
	dst = m.append(append(dst, `,"metadata":`...))
	return append(dst, `,"items":[`...)
}

// ListTail ends what ListHead or TableHead began.
const ListTail = "]}"

// AppendPartial appends the metadata of an object, stored or spliced bytes, as a
// PartialObjectMetadata of the given version of the metadata group. Splice
// takes the result.
func AppendPartial(dst, object []byte, p names.Profile, version string) []byte {
	dst = append(dst, versionHead...)
	dst = append(append(append(dst, p.Group(names.GroupMeta)...), '/'), version...)
	dst = append(dst, `","kind":"PartialObjectMetadata","metadata":`...)
	metadata := FindField(object, "metadata")
	if metadata == nil {
		metadata = []byte("{}")
	}
	return append(append(dst, metadata...), '}')
}

// PartialListHead is ListHead for PartialObjectMetadata items.
func PartialListHead(dst []byte, p names.Profile, version string, m ListMeta) []byte {
	return ListHead(dst, p.Group(names.GroupMeta)+"/"+version, "PartialObjectMetadataList", m)
}

// Column is a column of a Table with the function that fills its cells.
type Column struct {
	Name, Type, Format, Doc string
	Priority                int
	Cell                    func(obj *meta.Object) any
}

// Include says what a row of a Table carries beside its cells.
type Include uint8

// The values of the query parameter includeObject.
const (
	IncludeMetadata Include = iota
	IncludeNone
	IncludeObject
)

// ParseInclude reads the query parameter includeObject; empty means Metadata.
// Errors are 400 *meta.Status.
func ParseInclude(s string) (Include, error) {
	switch s {
	case "", "Metadata":
		return IncludeMetadata, nil
	case "None":
		return IncludeNone, nil
	case "Object":
		return IncludeObject, nil
	}
	return 0, meta.BadRequest("unrecognized includeObject value: %.64q", s)
}

// TableHead appends a Table up to its first row; rows follow, joined by
// commas, and ListTail. Nil columns are written as null: in a watch all tables
// but the first leave the definitions out.
func TableHead(dst []byte, p names.Profile, version string, columns []Column, m ListMeta) []byte {
	dst = append(dst, versionHead...)
	dst = append(append(append(dst, p.Group(names.GroupMeta)...), '/'), version...)
	dst = m.append(append(dst, `","kind":"Table","metadata":`...))
	dst = append(dst, `,"columnDefinitions":`...)
	if columns == nil {
		return append(dst, `null,"rows":[`...)
	}
	dst = append(dst, '[')
	for i, c := range columns {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(append(dst, `{"name":`...), c.Name)
		dst = appendString(append(dst, `,"type":`...), c.Type)
		dst = appendString(append(dst, `,"format":`...), c.Format)
		dst = appendString(append(dst, `,"description":`...), c.Doc)
		dst = strconv.AppendInt(append(dst, `,"priority":`...), int64(c.Priority), 10)
		dst = append(dst, '}')
	}
	return append(dst, `],"rows":[`...)
}

// TableRow appends one row: the cells of obj, and of its spliced bytes what
// include asks for.
func TableRow(dst []byte, p names.Profile, version string, columns []Column, obj *meta.Object, object []byte, include Include) []byte {
	dst = append(dst, `{"cells":[`...)
	for i, c := range columns {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = EncodeValue(dst, c.Cell(obj))
	}
	dst = append(dst, `],"object":`...)
	switch include {
	case IncludeNone:
		dst = append(dst, "null"...)
	case IncludeObject:
		dst = append(dst, object...)
	default:
		dst = AppendPartial(dst, object, p, version)
	}
	return append(dst, '}')
}
