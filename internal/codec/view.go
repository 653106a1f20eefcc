package codec

import (
	"strconv"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/wellknown"
)

// ListMeta is the metadata of a list response.
type ListMeta struct {
	ResourceVersion string // empty if the items have no versions
	Continue        string
	Remaining       *int64 // number of items after this page; nil if unknown
	KeepContinue    bool   // write continue even if it is empty, as in lists of custom kinds
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

// ListHead appends the part of a list before its items. The caller appends the items, separated
// by commas, and ListTail.
func ListHead(dst []byte, apiVersion, kind string, m ListMeta) []byte {
	dst = appendString(append(dst, versionHead[:len(versionHead)-1]...), apiVersion)
	dst = appendString(append(dst, `,"kind":`...), kind)
	dst = m.append(append(dst, `,"metadata":`...))
	return append(dst, `,"items":[`...)
}

// ListTail is the end of a list or table.
const ListTail = "]}"

// AppendPartial appends the metadata of object, stored or spliced bytes, as a
// PartialObjectMetadata in the given version of the metadata group. Splice can be applied to
// the result.
func AppendPartial(dst, object []byte, p names.Profile, version string) []byte {
	dst = append(dst, versionHead...)
	dst = append(append(append(dst, p.Group(wellknown.GroupMeta)...), '/'), version...)
	dst = append(dst, `","kind":"PartialObjectMetadata","metadata":`...)
	metadata := FindField(object, "metadata")
	if metadata == nil {
		metadata = []byte("{}")
	}
	return append(append(dst, metadata...), '}')
}

// PartialListHead is ListHead for PartialObjectMetadata items.
func PartialListHead(dst []byte, p names.Profile, version string, m ListMeta) []byte {
	return ListHead(dst, p.Group(wellknown.GroupMeta)+"/"+version, "PartialObjectMetadataList", m)
}

// Column is a column of a Table. Cell returns the value of its cell for an object.
type Column struct {
	Name, Type, Format, Doc string
	Priority                int
	Cell                    func(obj *meta.Object) any
}

// Include selects the object that is in each row of a Table.
type Include uint8

// Values of the query parameter includeObject.
const (
	IncludeMetadata Include = iota
	IncludeNone
	IncludeObject
)

// ParseInclude parses the query parameter includeObject; empty means Metadata. Errors are 400
// *meta.Status.
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

// TableHead appends the part of a Table before its rows. The caller appends the rows, separated
// by commas, and ListTail. Nil columns are written as null: in a watch, only the first table
// has column definitions.
func TableHead(dst []byte, p names.Profile, version string, columns []Column, m ListMeta) []byte {
	dst = append(dst, versionHead...)
	dst = append(append(append(dst, p.Group(wellknown.GroupMeta)...), '/'), version...)
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

// TableRow appends a row with the cells for obj and, depending on include, the object or its
// metadata. object is the spliced bytes of obj.
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
