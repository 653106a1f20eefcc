package aggregator

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/server/internal/openapi"
)

// Bounds of the OpenAPI documents of other servers, in bytes.
const (
	maxIndex   = 1 << 20
	maxSwagger = 8 << 20
	maxAll     = 32 << 20 // of the parts that are kept of those of version 2, of all servers
)

// Swagger is what is kept of a document of version 2.
type Swagger = openapi.Foreign

// readOpenAPI reads where the document of version 3 is and what that of version 2 says, now
// and then. Of documents that cannot be had the ones before are kept: a server need not
// have any. It does not wait for others, who may be slow on purpose: false says that there
// was no place.
func (a *Aggregator) readOpenAPI(ctx context.Context, v *Version) bool {
	select {
	case a.reading <- struct{}{}:
	default:
		return false
	}
	defer func() { <-a.reading }()
	if !v.way.readAgain() {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, readingTime)
	defer cancel()
	for what, read := range map[string]func(context.Context, *Version) error{"v3": a.readIndex, "v2": a.readSwagger} {
		if err := read(ctx, v); err != nil && ctx.Err() == nil {
			a.o.Log.Debug("an OpenAPI document of another server is left out", "apiservice", v.Name, "version", what, "error", err)
		}
	}
	return true
}

// readAgain reports whether it is time to read the documents, and notes that they are read.
func (w *way) readAgain() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.read) < readAgain {
		return false
	}
	w.read = time.Now()
	return true
}

// tagOf returns the tag of the document of a path that was read before.
func (w *way) tagOf(path string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tags[path]
}

func (w *way) setTag(path, tag string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tags[path] = tag
}

// readIndex learns the hash of the document of version 3, by which callers know whether
// they have it.
func (a *Aggregator) readIndex(ctx context.Context, v *Version) error {
	const path = "/openapi/v3"
	doc, err := a.get(ctx, v, path, v.way.tagOf(path), maxIndex)
	if err != nil || doc.text == nil {
		return err
	}
	tree, _, err := codec.DecodeJSON(doc.text, codec.Limits{Depth: maxDepth})
	if err != nil {
		return err
	}
	at, err := url.Parse(meta.NewObject(tree).String("paths", openapi.Path(v.GroupVersion), "serverRelativeURL"))
	if err != nil {
		return err
	}
	hash := at.Query().Get("hash")
	if hash == "" || len(hash) > maxWord || strings.ContainsFunc(hash, func(c rune) bool { return c <= ' ' || c >= 0x7f }) {
		return errors.New("the index does not have the version")
	}
	a.learn(v, func(d *Documents) { d.Hash = hash })
	v.way.setTag(path, doc.tag)
	return nil
}

// readSwagger learns the part of the document of version 2 that is about the version.
func (a *Aggregator) readSwagger(ctx context.Context, v *Version) error {
	const path = "/openapi/v2"
	doc, err := a.get(ctx, v, path, v.way.tagOf(path), maxSwagger)
	if err != nil || doc.text == nil {
		return err
	}
	part, err := openapi.ReadForeign(doc.text, v.GroupVersion, a.o.Names)
	if err != nil {
		return err
	}
	all := part.Size()
	for _, other := range a.Table().AllRemote() {
		if other.Name != v.Name && other.Documents.Swagger != nil {
			all += other.Documents.Swagger.Size()
		}
	}
	if all > maxAll {
		return errors.New("there is no room for it")
	}
	a.learn(v, func(d *Documents) {
		if !part.Equal(d.Swagger) {
			d.Swagger = part
		}
	})
	v.way.setTag(path, doc.tag)
	return nil
}

// Others returns what documents of this server say of other servers.
func (t *Table) Others() *openapi.Others {
	o := &openapi.Others{Index: map[string]string{}}
	for _, v := range t.remote {
		if v.Documents.Hash != "" {
			o.Index[openapi.Path(v.GroupVersion)] = openapi.URL(v.GroupVersion, url.QueryEscape(v.Documents.Hash))
		}
		if v.Documents.Swagger != nil {
			o.V2 = append(o.V2, v.Documents.Swagger)
		}
	}
	return o
}
