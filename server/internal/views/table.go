package views

import (
	"context"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/server/internal/media"
	"orch.io/controlplane/server/internal/objectcache"
	"orch.io/controlplane/server/internal/objects"
)

// Table encodes the Tables of a response. A watch is a stream of Tables, of which only the first
// has column definitions. A Table belongs to the goroutine of the request.
type Table struct {
	enc     *Encoder
	version *resource.Version
	media   media.Type
	include codec.Include
	columns []codec.Column
	headed  bool // the column definitions were encoded
}

// NewTable returns the Table of a request. It fails if the parameter includeObject is invalid.
func (enc *Encoder) NewTable(r *exchange.Request) (*Table, error) {
	include, err := codec.ParseInclude(r.Query.Get("includeObject"))
	t := &Table{enc: enc, version: r.BodyVersion(), media: r.Media, include: include}
	t.columns = make([]codec.Column, len(t.version.Columns))
	for i, c := range t.version.Columns {
		t.columns[i] = codec.Column{Name: c.Name, Type: c.Type, Format: c.Format, Doc: c.Doc, Priority: c.Priority, Cell: c.Cell}
	}
	return t, err
}

// Entries returns a Table with a row for each entry.
func (t *Table) Entries(ctx context.Context, entries []*objectcache.Entry, m codec.ListMeta) ([]byte, error) {
	body := t.head(m)
	for i, e := range entries {
		yield(i)
		row, err := objects.Object(ctx, e, t.version.ColumnsVersion())
		if err != nil {
			return nil, err
		}
		obj := row
		if t.version.ColumnsVersion() != t.version {
			if obj, err = objects.Object(ctx, e, t.version); err != nil {
				return nil, err
			}
		}
		if i > 0 {
			body = append(body, ',')
		}
		object := e.JSON()
		if !objects.AsStored(ctx, e, t.version) {
			object = codec.EncodeJSON(nil, obj.Tree())
		}
		body = t.row(body, t.columns, row, object)
	}
	return append(body, codec.ListTail...), nil
}

// object returns a Table with a single row, for an object that has no entry.
func (t *Table) object(obj *meta.Object) []byte { return t.single(t.columns, obj) }

// Bookmark returns the Table of a BOOKMARK event: a single row with empty cells.
func (t *Table) Bookmark(obj *meta.Object) []byte {
	empty := make([]codec.Column, len(t.columns))
	for i := range empty {
		empty[i].Cell = func(*meta.Object) any { return nil }
	}
	return t.single(empty, obj)
}

func (t *Table) single(columns []codec.Column, obj *meta.Object) []byte {
	body := t.head(codec.ListMeta{ResourceVersion: obj.ResourceVersion()})
	body = t.row(body, columns, obj, codec.EncodeJSON(nil, obj.Tree()))
	return append(body, codec.ListTail...)
}

func (t *Table) head(m codec.ListMeta) []byte {
	columns := t.columns
	if t.headed {
		columns = nil
	}
	t.headed = true
	return codec.TableHead(nil, t.enc.Names, t.media.ViewVersion, columns, m)
}

func (t *Table) row(dst []byte, columns []codec.Column, row *meta.Object, object []byte) []byte {
	return codec.TableRow(dst, t.enc.Names, t.media.ViewVersion, columns, row, object, t.include)
}
