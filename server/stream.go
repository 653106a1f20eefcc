package server

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/server/internal/media"
	"orch.io/controlplane/server/internal/objects"
	"orch.io/controlplane/server/internal/watch"
	"orch.io/controlplane/storage"
)

// bookmarkEvery is how often a quiet watch that asked for bookmarks gets one.
const bookmarkEvery = time.Minute

// serveWatch answers a watch: first the current
// state, if the caller has none, then every change as it comes.
func (s *Server) serveWatch(ctx context.Context, w *exchange.Response, r *exchange.Request) error {
	if err := s.prepare(r); err != nil {
		return err
	}
	o, err := s.listOptions(r, true)
	if err != nil {
		return err
	}
	if name, _ := o.Fields.Value("metadata.name"); r.Name != "" && !o.Fields.Empty() && name != r.Name {
		return meta.BadRequest("the field selector does not select the object on the path")
	}
	if o.Revision == 0 || o.initialEvents {
		if err := s.objects.AtLeast(ctx, o.Version, o.Revision); err != nil {
			return err
		}
		s.estimateSeats(r, o)
	}
	if err := r.Usage.AcquireSeat(r.HTTP.Context()); err != nil {
		return err
	}
	defer s.runs(r)()
	ctx, cancel := context.WithTimeout(r.HTTP.Context(), s.watchTime(o)) // no longer within the time of a request
	defer cancel()
	stop := context.AfterFunc(s.watching, cancel)
	defer stop()
	defer context.AfterFunc(ctx, r.Deadline.Cut)()
	return s.watch(ctx, w, r, o)
}

// watchTime is how long a watch lasts: as the caller asked, or a random time between once
// and twice the limit so that clients do not come back all at once.
func (s *Server) watchTime(o *listOptions) time.Duration {
	if o.timeout > 0 {
		return o.timeout
	}
	base := s.limits.WatchTime
	if base == 0 {
		base = 30 * time.Minute
	}
	return base + rand.N(base)
}

// watch opens the cursor and streams. An error means that nothing was sent yet.
func (s *Server) watch(ctx context.Context, w *exchange.Response, r *exchange.Request, o *listOptions) error {
	begun, cache := time.Now(), s.hub.Cache(r.Version.GroupResource())
	selector := objects.NewSelector(r.Version, &o.Selection)
	var initial []*watch.Entry
	var cursor *watch.Cursor
	var current bool // the watch begins with the current state
	var err error
	if o.initialEvents || o.Revision == 0 {
		if err := s.objects.AllReadable(r.Version.Type, &o.Selection); err != nil {
			return err
		}
		initial, cursor = cache.WatchFrom(selector.Query)
		if current = o.initialEvents || !o.sendInitial; !current {
			initial = nil
		}
	} else if cursor, err = cache.Watch(selector.Query, o.Revision); err != nil {
		if errors.Is(err, watch.ErrGone) {
			return s.watchGone(ctx, w, r, goneStatus(o.Revision, err))
		}
		return err
	}
	defer cursor.Close()
	if now := s.types().Type(r.Version.GroupResource()); now == nil || now.Origin != r.Version.Origin {
		cursor.Close() // replaced before the cursor was there to be ended
	}
	st, ctx, err := s.startStream(ctx, w, r)
	if st == nil {
		return err
	}
	defer st.end()
	st.selector = selector
	if st.sendAll(ctx, initial) != nil {
		return nil
	}
	if current && o.bookmarks {
		st.bookmark(cursor.Revision(), true)
	}
	if st.flush() != nil {
		return nil
	}
	if current && o.initialEvents {
		s.metrics.of(s, r, started, 0).size.Observe(time.Since(begun).Seconds())
	}
	st.follow(ctx, cursor, o.bookmarks)
	return nil
}

// watchGone answers a watch from a forgotten version: 200 with one ERROR event,
// as clients expect it.
func (s *Server) watchGone(ctx context.Context, w *exchange.Response, r *exchange.Request, why *meta.Status) error {
	st, _, err := s.startStream(ctx, w, r)
	if st == nil {
		return err
	}
	defer st.end()
	st.fail(why)
	_ = st.flush()
	return nil
}

// goneStatus says from which version a watch cannot go on, and which is the
// oldest one that it could go on from.
func goneStatus(from storage.Revision, err error) *meta.Status {
	why := fmt.Sprintf("too old resource version: %d", from)
	var gone *watch.GoneError
	if errors.As(err, &gone) {
		why += fmt.Sprintf(" (%d)", gone.Oldest)
	}
	return meta.Failure(http.StatusGone, meta.ReasonExpired, "%s", why)
}

// stream writes watch events to one caller.
type stream struct {
	server   *Server
	request  *exchange.Request
	selector *objects.Selector
	table    *table  // set for the Table view
	headed   bool    // a Table's column definitions were sent
	socket   *socket // nil: plain HTTP
	out      http.ResponseWriter
	control  *http.ResponseController
	counts   *streamCounts
}

// startStream sends the head of the answer. The context that it returns is the
// one to follow. There is no stream if that failed; without an error, the caller
// has been told.
func (s *Server) startStream(ctx context.Context, w *exchange.Response, r *exchange.Request) (*stream, context.Context, error) {
	st := &stream{server: s, request: r, out: w, control: http.NewResponseController(w), counts: s.metrics.stream(s, r.Version)}
	var err error
	if r.Media.View == media.Table {
		if st.table, err = s.table(r); err != nil {
			return nil, ctx, err
		}
	}
	if wantsSocket(r.HTTP) {
		if st.socket, ctx, err = st.openSocket(ctx, w); st.socket == nil {
			return nil, ctx, err
		}
	} else {
		w.Header().Set("Content-Type", r.Media.ContentType(s.names, true))
		r.Notes.WriteHeader(w.Header())
		w.WriteHeader(http.StatusOK)
	}
	r.Audit.Started(w.Code)
	return st, ctx, nil
}

// end tells the peer that nothing follows, where the end of the answer does not.
func (st *stream) end() {
	if st.socket != nil {
		st.socket.end()
	}
}

// follow sends changes until the watch ends: a batch, then one flush. Before it ends by its
// time or with the server a bookmark tells from where the next one goes on. Without it a client
// whose watch was short and told nothing would list again.
func (st *stream) follow(ctx context.Context, cursor *watch.Cursor, bookmarks bool) {
	quiet := time.Now() // since when nothing was sent
	for ended := error(nil); ended == nil; {
		st.request.Deadline.Pause()
		wait, cancel := ctx, context.CancelFunc(func() {})
		if bookmarks {
			wait, cancel = context.WithDeadline(ctx, quiet.Add(bookmarkEvery))
		}
		events, err := cursor.Next(wait)
		cancel()
		ended = ctx.Err()
		switch {
		case err == nil: // they are behind the cursor: none may be left out
			var sent bool
			if sent, err = st.send(ctx, events); sent {
				quiet = time.Now()
			}
		case errors.Is(err, watch.ErrGone):
			st.counts.slow.Inc()
			st.fail(goneStatus(cursor.Revision(), err))
			_ = st.flush()
		case errors.Is(err, context.DeadlineExceeded) && ended == nil:
			err = nil
		case ended != nil:
			err = nil
		}
		if err != nil {
			return
		}
		over := errors.Is(ended, context.DeadlineExceeded) || ended != nil && st.server.watching.Err() != nil
		if bookmarks && (over || ended == nil && time.Since(quiet) >= bookmarkEvery) {
			st.bookmark(cursor.Revision(), false)
			quiet = time.Now()
		}
		if st.flush() != nil {
			return
		}
	}
}

// batch is how many bytes of events go out in one Write, about, and at least of
// those that are many.
const batch = 32 << 10

// send writes changes, those that the caller selects, and reports whether there are any.
func (st *stream) send(ctx context.Context, events []watch.Event) (bool, error) {
	events, err := st.selector.Narrow(ctx, events)
	if err != nil {
		return false, st.broken(ctx, nil, err)
	}
	return len(events) > 0, st.sendEvents(ctx, events)
}

// sendEvents writes changes. The framed bytes of each are made once for all watchers.
func (st *stream) sendEvents(ctx context.Context, events []watch.Event) error {
	entries := make([]*watch.Entry, len(events))
	for i, e := range events {
		entries[i] = e.Entry
	}
	entries, err := objects.InVersion(ctx, entries, st.request.Version)
	if err != nil {
		return st.broken(ctx, nil, err)
	}
	st.counts.events.Add(float64(len(events)))
	var buf []byte
	for i, e := range events {
		frame, err := st.frame(e, entries[i])
		switch {
		case err != nil:
			return st.broken(ctx, buf, err)
		default:
			st.counts.sizes.Observe(float64(len(frame)))
		}
		switch {
		case st.socket != nil, buf == nil && (i == len(events)-1 || len(frame) >= batch):
			err = st.write(frame)
		default:
			if buf = append(buf, frame...); len(buf) >= batch || i == len(events)-1 {
				err = st.write(buf)
				buf = buf[:0]
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// frame returns one event, of which the caller's version is shown, as bytes. Tables are
// made for each watcher, since the first of a stream carries the columns.
func (st *stream) frame(e watch.Event, shown *watch.Entry) ([]byte, error) {
	kind := e.Type.String()
	if st.table != nil {
		return st.appendFramed(nil, kind, shown)
	}
	r := st.request
	return e.Frame(formKey(r.Version, r.Media), func() ([]byte, error) { return st.appendFramed(nil, kind, shown) })
}

// initialBatch is how many objects are converted at a time, if they are.
const initialBatch = 500

// sendAll writes the objects that are there already.
func (st *stream) sendAll(ctx context.Context, entries []*watch.Entry) error {
	for some := range slices.Chunk(entries, initialBatch) {
		selected, err := st.selector.Filter(ctx, some)
		if err != nil {
			return st.broken(ctx, nil, err)
		}
		shown, err := objects.InVersion(ctx, selected, st.request.Version)
		if err != nil {
			return st.broken(ctx, nil, err)
		}
		if err := st.sendSome(ctx, shown); err != nil {
			return err
		}
	}
	return nil
}

// sendSome writes objects that are there already. What frames them is not kept: few
// callers begin at the same state.
func (st *stream) sendSome(ctx context.Context, entries []*watch.Entry) error {
	st.counts.events.Add(float64(len(entries)))
	var buf []byte
	for i, e := range entries {
		var err error
		before := len(buf)
		if buf, err = st.appendFramed(buf, watch.Added.String(), e); err != nil {
			return st.broken(ctx, buf, err)
		}
		st.counts.sizes.Observe(float64(len(buf) - before))
		if st.socket != nil || len(buf) >= batch || i == len(entries)-1 {
			if err := st.write(buf); err != nil {
				return err
			}
			buf = buf[:0]
		}
	}
	return nil
}

func (st *stream) appendFramed(dst []byte, kind string, e *watch.Entry) ([]byte, error) {
	s, v, m := st.server, st.request.Version, st.request.Media
	if st.table == nil && plain(v, m) {
		dst = e.AppendJSON(codec.FrameHead(dst, kind))
		return append(dst, codec.FrameTail...), nil
	}
	var body []byte
	var err error
	if st.table != nil {
		body, err = st.table.ofEntries(st.request.HTTP.Context(), []*watch.Entry{e}, codec.ListMeta{ResourceVersion: objects.FormatRevision(e.Revision())}, st.headed)
		st.headed = true
	} else {
		body, err = s.entryBytes(st.request.HTTP.Context(), e, v, m)
	}
	if err != nil {
		return dst, err
	}
	return append(dst, s.frameBytes(m, kind, body)...), nil
}

// write sends what is framed, one event if it goes as a message. Who takes it
// has the whole time for the next.
func (st *stream) write(frames []byte) error {
	st.request.Deadline.Renew()
	if st.socket != nil {
		return st.socket.send(frames)
	}
	_, err := st.out.Write(frames)
	return err
}

// broken ends the stream, after what is framed, because an object cannot be
// sent, unless it ended meanwhile.
func (st *stream) broken(ctx context.Context, frames []byte, err error) error {
	if len(frames) > 0 {
		_ = st.write(frames)
	}
	if ctx.Err() != nil {
		return err
	}
	status := objects.Status(err)
	if status == nil {
		status = meta.Internal(err)
	}
	st.fail(status)
	_ = st.flush()
	return err
}

// bookmark tells that everything up to a revision was sent.
func (st *stream) bookmark(rev storage.Revision, initialEnd bool) {
	v := st.request.Version
	obj := &meta.Object{}
	obj.SetGVK(v.GVK())
	obj.SetResourceVersion(objects.FormatRevision(rev))
	if initialEnd {
		obj.Set(map[string]any{st.server.names.Wire(names.InitialEventsEnd): "true"}, "metadata", "annotations")
	}
	var body []byte
	var err error
	if st.table != nil {
		body = st.table.bookmark(obj, st.headed)
		st.headed = true
	} else {
		body, err = st.server.objectBytes(obj, v, st.request.Media)
	}
	if err == nil {
		_ = st.write(st.server.frameBytes(st.request.Media, "BOOKMARK", body))
	}
}

// fail ends the stream with an ERROR event that carries a Status.
func (st *stream) fail(status *meta.Status) {
	body, err := codec.EncodeStatus(nil, status, st.request.Media.Format)
	if err == nil {
		_ = st.write(st.server.frameBytes(st.request.Media, "ERROR", body))
	}
}

func (st *stream) flush() error {
	if st.socket != nil {
		return nil // messages are not kept back
	}
	return st.control.Flush()
}
