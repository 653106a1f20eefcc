package aggregator

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/server/internal/openapi"
)

// Bounds of the OpenAPI documents of other servers, in bytes, and when they are read.
const (
	maxIndex    = 1 << 20
	maxSwagger  = 8 << 20
	maxAll      = 16 << 20 // of the parts that are kept of those of version 2, of all servers
	readAgain   = time.Minute
	readingTime = 30 * time.Second
)

// Where the documents are.
const (
	indexPath   = "/openapi/v3"
	swaggerPath = "/openapi/v2"
)

// Swagger is what is kept of a document of version 2.
type Swagger = openapi.Foreign

// reading is what is remembered of the documents of a server.
type reading struct {
	mu     sync.Mutex // guards the rest
	at     time.Time
	of     []int64                    // what was read for: since when the versions are known
	tags   map[string]string          // by path
	sum    [sha256.Size]byte          // of the document of version 2
	warned map[meta.GroupVersion]bool // whose part of it cannot be used
}

// begin reports whether it is time to read the documents, and notes that they are read.
func (r *reading) begin(of []*Version) bool {
	var versions []int64
	for _, v := range of {
		versions = append(versions, v.known)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch same := slices.Equal(r.of, versions); {
	case !same:
		r.of, r.tags, r.sum, r.warned = versions, map[string]string{}, [sha256.Size]byte{}, map[meta.GroupVersion]bool{}
	case time.Since(r.at) < readAgain:
		return false
	}
	r.at = time.Now()
	return true
}

// tag returns that of the document of a path that was read before.
func (r *reading) tag(path string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tags[path]
}

func (r *reading) setTag(path, tag string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tags[path] = tag
}

// forget has the document of version 2 read again as if it never was.
func (r *reading) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.tags, swaggerPath)
	r.sum = [sha256.Size]byte{}
}

// another reports whether a document of version 2 is another one than before.
func (r *reading) another(text []byte) bool {
	sum := sha256.Sum256(text)
	r.mu.Lock()
	defer r.mu.Unlock()
	same := sum == r.sum
	r.sum = sum
	return !same
}

// warn reports whether it is news that the part of a version cannot be used.
func (r *reading) warn(gv meta.GroupVersion, bad bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.warned[gv]
	r.warned[gv] = bad
	return bad && !was
}

// readOpenAPI reads where the documents of version 3 are and what that of version 2 says, now
// and then. Of documents that cannot be had the ones before are kept. It does not wait for
// others, who may be slow on purpose: false says that there was no place.
func (a *Aggregator) readOpenAPI(ctx context.Context, b *back) bool {
	select {
	case a.fetching <- struct{}{}:
	default:
		return false
	}
	defer func() { <-a.fetching }()
	if !b.way.reading.begin(b.versions) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, readingTime)
	defer cancel()
	for _, read := range []func(context.Context, *back) error{a.readIndex, a.readSwagger} {
		if err := read(ctx, b); err != nil && ctx.Err() == nil {
			a.o.Log.Debug("an OpenAPI document of another server cannot be read", "server", b.way.key, "error", stable(err))
		}
	}
	return true
}

// readIndex learns the hashes of the documents of version 3, by which callers know whether
// they have them.
func (a *Aggregator) readIndex(ctx context.Context, b *back) error {
	doc, err := a.get(ctx, b.versions[0], indexPath, b.way.reading.tag(indexPath), maxIndex)
	var code badStatus
	switch {
	case errors.As(err, &code) && code == http.StatusNotFound: // it has none: what it has not is not kept
	case err != nil || doc.text == nil:
		return err
	case !codec.IsObject(doc.text, maxDepth):
		return errors.New("the index is no JSON object")
	}
	for _, v := range b.versions {
		hash := hashOf(doc.text, v.GroupVersion)
		a.learn(v, func(d *Documents) { d.Hash = hash })
	}
	b.way.reading.setTag(indexPath, doc.tag)
	return nil
}

// hashOf returns the hash of the document of a version, empty if an index tells none.
func hashOf(index []byte, gv meta.GroupVersion) string {
	at, err := url.Parse(codec.ScalarText(codec.FindField(index, "paths", openapi.Path(gv), "serverRelativeURL")))
	if err != nil {
		return ""
	}
	hash := at.Query().Get("hash")
	if len(hash) > maxWord || strings.ContainsFunc(hash, func(c rune) bool { return c <= ' ' || c >= 0x7f }) {
		return ""
	}
	return strings.Clone(hash)
}

// readSwagger learns the parts of the document of version 2 that are about the versions. A
// part that cannot be used is left out, so that nobody else's is lost with it.
func (a *Aggregator) readSwagger(ctx context.Context, b *back) error {
	doc, err := a.get(ctx, b.versions[0], swaggerPath, b.way.reading.tag(swaggerPath), maxSwagger)
	if err != nil || doc.text == nil {
		return err
	}
	b.way.reading.setTag(swaggerPath, doc.tag)
	if !b.way.reading.another(doc.text) {
		return nil
	}
	a.parsing.Lock()
	defer a.parsing.Unlock()
	swagger, broken := openapi.OpenForeign(doc.text)
	for _, v := range b.versions {
		var part *Swagger
		err := broken
		if err == nil {
			part, err = swagger.Part(v.GroupVersion, a.o.Names)
		}
		if err == nil {
			if err = a.room(v, part); err != nil {
				b.way.reading.forget() // there may be some the next time
			}
		}
		if err != nil {
			part = nil
		}
		if b.way.reading.warn(v.GroupVersion, err != nil) {
			a.o.Log.Warn("an OpenAPI document of another server is left out", "apiservice", v.Name, "error", stable(err))
		}
		a.learn(v, func(d *Documents) {
			if !part.Equal(d.Swagger) {
				d.Swagger = part
			}
		})
	}
	return nil
}

// room checks that a part does not take too much with those of all others.
func (a *Aggregator) room(of *Version, part *Swagger) error {
	all := part.Size()
	for _, v := range a.Table().AllRemote() {
		if v.Name != of.Name {
			all += v.Documents.Swagger.Size()
		}
	}
	if all > maxAll {
		return fmt.Errorf("the documents of all servers are longer than %d bytes", maxAll)
	}
	return nil
}

// Others returns what documents of this server say of other servers.
func (t *Table) Others() *openapi.Others {
	o := &openapi.Others{Index: map[string]string{}, V3: map[meta.GroupVersion]*Swagger{}}
	for _, v := range t.remote {
		switch d := v.Documents; {
		case d.Hash != "":
			o.Index[openapi.Path(v.GroupVersion)] = openapi.URL(v.GroupVersion, url.QueryEscape(d.Hash))
		case d.Swagger != nil:
			o.V3[v.GroupVersion] = d.Swagger
		}
		if v.Documents.Swagger != nil {
			o.V2 = append(o.V2, v.Documents.Swagger)
		}
	}
	return o
}

// TellsV3 reports whether another server has a document of version 3 of the version; else it
// is made here of the one of version 2, if there is that.
func (v *Version) TellsV3() bool { return v.Documents.Hash != "" || v.Documents.Swagger == nil }
