package server

import (
	"context"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/server/internal/media"
	"orch.io/controlplane/server/internal/objects"
	"orch.io/controlplane/server/internal/watch"
)

// table writes objects as a Table.
type table struct {
	server  *Server
	version *resource.Version
	media   media.Type
	include codec.Include
}

func (s *Server) table(r *exchange.Request) (*table, error) {
	include, err := codec.ParseInclude(r.Query.Get("includeObject"))
	return &table{s, r.BodyVersion(), r.Media, include}, err
}

func (t *table) columns() []codec.Column {
	list := make([]codec.Column, len(t.version.Columns))
	for i, c := range t.version.Columns {
		list[i] = codec.Column{Name: c.Name, Type: c.Type, Format: c.Format, Doc: c.Doc, Priority: c.Priority, Cell: c.Cell}
	}
	return list
}

// ofEntries makes a Table of entries. headed leaves the column definitions out,
// as all Tables of a watch but the first do.
func (t *table) ofEntries(ctx context.Context, entries []*watch.Entry, m codec.ListMeta, headed bool) ([]byte, error) {
	columns := t.columns()
	body := t.head(columns, m, headed)
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
		body = codec.TableRow(body, t.server.names, t.media.ViewVersion, columns, row, object, t.include)
	}
	return append(body, codec.ListTail...), nil
}

// ofObject makes a Table of one object that has no entry.
func (t *table) ofObject(obj *meta.Object) []byte {
	columns := t.columns()
	body := t.head(columns, codec.ListMeta{ResourceVersion: obj.ResourceVersion()}, false)
	body = codec.TableRow(body, t.server.names, t.media.ViewVersion, columns, obj, codec.EncodeJSON(nil, obj.Tree()), t.include)
	return append(body, codec.ListTail...)
}

// bookmark makes the Table of a BOOKMARK event: one row without cells.
func (t *table) bookmark(obj *meta.Object, headed bool) []byte {
	var blank []codec.Column
	for range t.version.Columns {
		blank = append(blank, codec.Column{Cell: func(*meta.Object) any { return nil }})
	}
	body := t.head(t.columns(), codec.ListMeta{ResourceVersion: obj.ResourceVersion()}, headed)
	body = codec.TableRow(body, t.server.names, t.media.ViewVersion, blank, obj, codec.EncodeJSON(nil, obj.Tree()), t.include)
	return append(body, codec.ListTail...)
}

func (t *table) head(columns []codec.Column, m codec.ListMeta, headed bool) []byte {
	if headed {
		columns = nil
	}
	return codec.TableHead(nil, t.server.names, t.media.ViewVersion, columns, m)
}
