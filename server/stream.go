package server

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"orch.io/controlplane/registry/codec"
	"orch.io/controlplane/registry/meta"
	"orch.io/controlplane/registry/names"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/watch"
)

// bookmarkEvery is how often a quiet watch that asked for bookmarks gets one.
const bookmarkEvery = time.Minute

// serveWatch answers a watch (conventions, Watch usage): first the current
// state, if the caller has none, then every change as it comes.
func (s *Server) serveWatch(w *response, r *request) {
	release, err := s.countWatch()
	if err != nil {
		s.fail(w, r, err)
		return
	}
	defer release()
	o, m, err := s.prepareWatch(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.http.Context(), s.watchTime(o))
	defer cancel()
	stop := context.AfterFunc(s.life, cancel)
	defer stop()
	defer context.AfterFunc(ctx, r.patience.cut)()
	if err := s.watch(ctx, w, r, o, m); err != nil {
		s.fail(w, r, err)
	}
}

// prepareWatch checks everything about a watch that can be refused.
func (s *Server) prepareWatch(r *request) (*listOptions, codec.Media, error) {
	if err := s.resolve(r); err != nil {
		return nil, codec.Media{}, err
	}
	if !allowed(&request{http: r.http, version: r.version, sub: r.sub, namespace: r.namespace, verb: "list"}) {
		return nil, codec.Media{}, methodNotAllowed()
	}
	offer := codec.Offer{Views: true, Watch: true, Protobuf: r.bodyVersion().Proto() != nil}
	m, err := codec.Negotiate(r.http.Header.Get("Accept"), s.names, offer)
	if err != nil {
		return nil, m, err
	}
	o, err := parseListOptions(r.query, r.version.Type, true)
	return o, m, err
}

// watch opens the cursor and streams. An error means that nothing was sent yet.
func (s *Server) watch(ctx context.Context, w *response, r *request, o *listOptions, m codec.Media) error {
	cache := s.hub.Cache(r.version.GroupResource())
	q := s.listQuery(r, o)
	var initial []*watch.Entry
	var cursor *watch.Cursor
	var err error
	if o.initialEvents || o.revision == 0 {
		if err := s.atLeast(ctx, o.version, o.revision); err != nil {
			return err
		}
		initial, cursor = cache.WatchFrom(q)
		if o.sendInitial && !o.initialEvents {
			initial = nil
		}
	} else if cursor, err = cache.Watch(q, o.revision); err != nil {
		if errors.Is(err, watch.ErrGone) {
			return s.watchGone(w, r, m, o)
		}
		return err
	}
	defer cursor.Close()
	st, err := s.newStream(w, r, m)
	if err != nil {
		return err
	}
	st.start()
	for _, e := range initial {
		if st.send(watch.Added, e) != nil {
			return nil
		}
	}
	if o.initialEvents && o.bookmarks {
		st.bookmark(cursor.Revision(), true)
	}
	if st.flush() != nil {
		return nil
	}
	st.follow(ctx, cursor, o.bookmarks)
	return nil
}

// watchGone answers a watch from a forgotten version: 200 with one ERROR event,
// as clients expect it.
func (s *Server) watchGone(w *response, r *request, m codec.Media, o *listOptions) error {
	st, err := s.newStream(w, r, m)
	if err != nil {
		return err
	}
	st.start()
	st.fail(goneStatus(o.version))
	_ = st.flush()
	return nil
}

func goneStatus(version string) *meta.Status {
	return meta.Failure(http.StatusGone, meta.ReasonExpired, "too old resource version: %s", version)
}

// stream writes watch events to one caller.
type stream struct {
	server  *Server
	request *request
	media   codec.Media
	table   *table // set for the Table view
	headed  bool   // a Table's column definitions were sent
	out     http.ResponseWriter
	control *http.ResponseController
}

func (s *Server) newStream(w *response, r *request, m codec.Media) (*stream, error) {
	st := &stream{server: s, request: r, media: m, out: w, control: http.NewResponseController(w)}
	if m.View != codec.Table {
		return st, nil
	}
	var err error
	st.table, err = s.table(r, m)
	return st, err
}

func (st *stream) start() {
	h := st.out.Header()
	h.Set("Content-Type", st.media.ContentType(st.server.names, true))
	h.Set("Cache-Control", "no-cache, private")
	st.request.notes.header(h)
	st.out.WriteHeader(http.StatusOK)
	st.request.record.started(http.StatusOK)
}

// follow sends changes until the watch ends: a batch, then one flush.
func (st *stream) follow(ctx context.Context, cursor *watch.Cursor, bookmarks bool) {
	for {
		wait, cancel := ctx, context.CancelFunc(func() {})
		if bookmarks {
			wait, cancel = context.WithTimeout(ctx, bookmarkEvery)
		}
		events, err := cursor.Next(wait)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, context.DeadlineExceeded):
			st.request.patience.renew()
			st.bookmark(cursor.Revision(), false)
		case errors.Is(err, watch.ErrGone):
			st.fail(goneStatus(""))
			_ = st.flush()
			return
		case err != nil:
			return
		}
		st.request.patience.renew()
		for i := range events {
			if st.send(events[i].Type, events[i].Entry) != nil {
				return
			}
		}
		if st.flush() != nil {
			return
		}
	}
}

// send writes one event. The framed bytes are made once for all watchers.
func (st *stream) send(kind watch.EventType, e *watch.Entry) error {
	frame, err := st.frame(kind, e)
	if err != nil {
		st.fail(meta.Internal(err))
		return err
	}
	_, err = st.out.Write(frame)
	return err
}

// bookmark tells that everything up to a revision was sent.
func (st *stream) bookmark(rev storage.Revision, initialEnd bool) {
	v := st.request.version
	obj := &meta.Object{}
	obj.SetGVK(v.GVK())
	obj.SetResourceVersion(formatRevision(rev))
	if initialEnd {
		obj.Set(map[string]any{st.server.names.Wire(names.InitialEventsEnd): "true"}, "metadata", "annotations")
	}
	var body []byte
	var err error
	if st.table != nil {
		body = st.table.bookmark(obj, st.headed)
		st.headed = true
	} else {
		body, err = st.server.objectBytes(obj, v, st.media)
	}
	if err == nil {
		_, _ = st.out.Write(st.server.frameBytes(st.media, "BOOKMARK", body))
	}
}

// fail ends the stream with an ERROR event that carries a Status.
func (st *stream) fail(status *meta.Status) {
	body, err := codec.EncodeStatus(nil, status, st.media.Format)
	if err == nil {
		_, _ = st.out.Write(st.server.frameBytes(st.media, "ERROR", body))
	}
}

func (st *stream) flush() error { return st.control.Flush() }

func jitter(d time.Duration) time.Duration { return rand.N(d) }
