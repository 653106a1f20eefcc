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

// Limits of the OpenAPI documents of extension servers, in bytes, and the times at which they are read.
const (
	maxIndex    = 1 << 20
	maxSwagger  = 8 << 20
	maxAll      = 16 << 20 // of the parts of documents of version 2 that are kept, of all servers
	readAgain   = time.Minute
	readingTime = 30 * time.Second
)

// Paths of the documents.
const (
	indexPath   = "/openapi/v3"
	swaggerPath = "/openapi/v2"
)

// Swagger is the part of a document of version 2 that is kept.
type Swagger = openapi.Foreign

// reading is the state of the documents of a server.
type reading struct {
	mu     sync.Mutex                 // guards the fields below
	at     time.Time                  // when they were last read
	of     []int64                    // Version.generation of the versions for which they were read
	tags   map[string]string          // ETags by path
	sum    [sha256.Size]byte          // of the document of version 2
	warned map[meta.GroupVersion]bool // versions for which it was logged that their part cannot be used
}

// begin reports whether it is time to read the documents, and if so, records that they are being read.
func (r *reading) begin(of []*Version) bool {
	var versions []int64
	for _, v := range of {
		versions = append(versions, v.generation)
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

// tag returns the ETag of a document that was read before.
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

// reset discards the state of the document of version 2, so that it is read again in any case.
func (r *reading) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.tags, swaggerPath)
	r.sum = [sha256.Size]byte{}
}

// changed reports whether a document of version 2 differs from the previous one.
func (r *reading) changed(text []byte) bool {
	sum := sha256.Sum256(text)
	r.mu.Lock()
	defer r.mu.Unlock()
	same := sum == r.sum
	r.sum = sum
	return !same
}

// warn records whether the part of a version cannot be used, and reports whether to log that it cannot.
func (r *reading) warn(gv meta.GroupVersion, bad bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.warned[gv]
	r.warned[gv] = bad
	return bad && !was
}

// readOpenAPI reads the index of the documents of version 3 and the document of version 2 of a server, at most once
// in readAgain. If a document cannot be read, the previous document stays. readOpenAPI does not wait for the reads
// from other servers, which may be slow on purpose: it returns false if all slots are in use.
func (a *Aggregator) readOpenAPI(ctx context.Context, b *server) bool {
	select {
	case a.fetchSlots <- struct{}{}:
	default:
		return false
	}
	defer func() { <-a.fetchSlots }()
	if !b.transport.reading.begin(b.versions) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, readingTime)
	defer cancel()
	for _, read := range []func(context.Context, *server) error{a.readIndex, a.readSwagger} {
		if err := read(ctx, b); err != nil && ctx.Err() == nil {
			a.o.Log.Debug("failed to read OpenAPI document of extension server", "server", b.transport.key, "error", errorText(err))
		}
	}
	return true
}

// readIndex reads the hashes of the documents of version 3. Clients use the hashes to cache the documents.
func (a *Aggregator) readIndex(ctx context.Context, b *server) error {
	doc, err := a.get(ctx, b.versions[0], indexPath, b.transport.reading.tag(indexPath), maxIndex)
	var code badStatus
	switch {
	case errors.As(err, &code) && code == http.StatusNotFound: // the server has no documents: forget the hashes
	case err != nil || doc.text == nil:
		return err
	case !codec.IsObject(doc.text, maxDepth):
		return errors.New("the index is not a JSON object")
	}
	for _, v := range b.versions {
		hash := hashOf(doc.text, v.GroupVersion)
		a.updateDocuments(v, func(d *Documents) { d.Hash = hash })
	}
	b.transport.reading.setTag(indexPath, doc.tag)
	return nil
}

// hashOf returns the hash of the document of a version in an index, or "".
func hashOf(index []byte, gv meta.GroupVersion) string {
	at, err := url.Parse(codec.ScalarText(codec.FindField(index, "paths", openapi.Path(gv), "serverRelativeURL")))
	if err != nil {
		return ""
	}
	hash := at.Query().Get("hash")
	if len(hash) > maxName || strings.ContainsFunc(hash, func(c rune) bool { return c <= ' ' || c >= 0x7f }) {
		return ""
	}
	return strings.Clone(hash)
}

// readSwagger reads the document of version 2 and keeps the parts for the versions of the server. A part that cannot
// be used is left out of the merged document, so that it does not make the whole document unusable.
func (a *Aggregator) readSwagger(ctx context.Context, b *server) error {
	doc, err := a.get(ctx, b.versions[0], swaggerPath, b.transport.reading.tag(swaggerPath), maxSwagger)
	if err != nil || doc.text == nil {
		return err
	}
	b.transport.reading.setTag(swaggerPath, doc.tag)
	if !b.transport.reading.changed(doc.text) {
		return nil
	}
	a.parseMu.Lock()
	defer a.parseMu.Unlock()
	swagger, broken := openapi.OpenForeign(doc.text)
	for _, v := range b.versions {
		var part *Swagger
		err := broken
		if err == nil {
			part, err = swagger.Part(v.GroupVersion, a.o.Names)
		}
		if err == nil {
			if err = a.checkRoom(v, part); err != nil {
				b.transport.reading.reset() // try again the next time
			}
		}
		if err != nil {
			part = nil
		}
		if b.transport.reading.warn(v.GroupVersion, err != nil) {
			a.o.Log.Warn("ignoring OpenAPI document of extension server", "apiservice", v.Name, "error", errorText(err))
		}
		a.updateDocuments(v, func(d *Documents) {
			if !part.Equal(d.Swagger) {
				d.Swagger = part
			}
		})
	}
	return nil
}

// checkRoom returns an error if a part, together with the parts of all other APIServices, exceeds maxAll.
func (a *Aggregator) checkRoom(of *Version, part *Swagger) error {
	all := part.Size()
	for _, v := range a.Table().AllRemote() {
		if v.Name != of.Name {
			all += v.Documents.Swagger.Size()
		}
	}
	if all > maxAll {
		return fmt.Errorf("the documents of all extension servers exceed %d bytes", maxAll)
	}
	return nil
}

// Others returns the documents of the extension servers for the documents of this server.
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

// ServesV3 reports whether requests for the document of version 3 go to the extension server. If it has only a
// document of version 2, this server makes the document from that.
func (v *Version) ServesV3() bool { return v.Documents.Hash != "" || v.Documents.Swagger == nil }
