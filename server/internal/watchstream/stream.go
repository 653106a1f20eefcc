// Package watchstream serves watches: optionally the current state, then every change, as chunks of
// a response or as messages of a WebSocket.
package watchstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/server/internal/media"
	"orch.io/controlplane/server/internal/objectcache"
	"orch.io/controlplane/server/internal/objects"
	"orch.io/controlplane/server/internal/requestmetrics"
	"orch.io/controlplane/server/internal/views"
	"orch.io/controlplane/storage"
)

// Options are the parts of a server that a Streamer needs.
type Options struct {
	Encoder  *views.Encoder
	Objects  *objects.Store
	Hub      *objectcache.Set
	Types    func() *resource.State
	Lifetime *exchange.Lifetime // ends the watches
	Log      *slog.Logger
	Metrics  *requestmetrics.Metrics
	Time     time.Duration // see Streamer.duration
}

// Streamer serves watches. Its methods may be called concurrently.
type Streamer struct{ o Options }

// New returns a Streamer.
func New(o Options) *Streamer { return &Streamer{o} }

// Watch has the parameters of a watch request.
type Watch struct {
	objects.Selection
	Timeout       time.Duration // timeoutSeconds; zero if not given
	Bookmarks     bool
	InitialEvents bool // send the current state first
	SendInitial   bool // sendInitialEvents was given, with any value
}

// current reports whether the watch reads the current state.
func (o *Watch) current() bool { return o.InitialEvents || o.Revision == 0 }

// Serve serves a watch until it ends. It returns an error only if nothing was sent.
func (s *Streamer) Serve(w *exchange.Response, r *exchange.Request, o *Watch) error {
	defer s.o.Metrics.Running(r)()
	ctx, cancel := context.WithTimeout(r.HTTP.Context(), s.duration(o))
	defer cancel()
	defer s.o.Lifetime.Bind(cancel)()
	defer context.AfterFunc(ctx, r.Deadline.Cut)()
	return s.watch(ctx, w, r, o)
}

// duration returns the duration of a watch: the requested timeout, or a random duration between
// once and twice Options.Time, so that clients do not reconnect all at once.
func (s *Streamer) duration(o *Watch) time.Duration {
	if o.Timeout > 0 {
		return o.Timeout
	}
	return s.o.Time + rand.N(s.o.Time)
}

func (s *Streamer) watch(ctx context.Context, w *exchange.Response, r *exchange.Request, o *Watch) error {
	begun, cache := time.Now(), s.o.Hub.Cache(r.Version.GroupResource())
	selector := objects.NewSelector(r.Version, &o.Selection)
	var initial []*objectcache.Entry
	var cursor *objectcache.Cursor
	var current bool // the watch begins with the current state
	var err error
	if o.current() {
		if err := s.o.Objects.AllReadable(r.Version.Type, &o.Selection); err != nil {
			return err
		}
		initial, cursor = cache.ListAndWatch(selector.Query)
		if current = o.InitialEvents || !o.SendInitial; !current {
			initial = nil
		}
	} else if cursor, err = cache.Watch(selector.Query, o.Revision); err != nil {
		if errors.Is(err, storage.ErrCompacted) {
			return s.sendGone(ctx, w, r, goneStatus(o.Revision, err))
		}
		return err
	}
	defer cursor.Close()
	if now := s.o.Types().Type(r.Version.GroupResource()); now == nil || now.Origin != r.Version.Origin {
		cursor.Close() // the type was replaced before its cursors were closed
	}
	st, ctx, err := s.start(ctx, w, r)
	if st == nil {
		return err
	}
	defer st.end()
	st.selector = selector
	if st.sendAll(ctx, initial) != nil {
		return nil
	}
	if current && o.Bookmarks {
		st.bookmark(cursor.Revision(), true)
	}
	if st.flush() != nil {
		return nil
	}
	if current && o.InitialEvents {
		s.o.Metrics.WatchStarted(r, time.Since(begun))
	}
	st.follow(ctx, cursor, o.Bookmarks)
	return nil
}

// sendGone responds to a watch from a compacted revision: 200 with a single ERROR event, as clients
// expect it.
func (s *Streamer) sendGone(ctx context.Context, w *exchange.Response, r *exchange.Request, why *meta.Status) error {
	st, _, err := s.start(ctx, w, r)
	if st == nil {
		return err
	}
	defer st.end()
	st.fail(why)
	_ = st.flush()
	return nil
}

// goneStatus returns the 410 of a watch that cannot continue from a revision. The message has the
// oldest available revision, if that is known.
func goneStatus(from storage.Revision, err error) *meta.Status {
	why := fmt.Sprintf("too old resource version: %d", from)
	var gone *storage.CompactedError
	if errors.As(err, &gone) {
		why += fmt.Sprintf(" (%d)", gone.Oldest)
	}
	return meta.Failure(http.StatusGone, meta.ReasonExpired, "%s", why)
}

// stream writes the events of a watch.
type stream struct {
	*Streamer
	request  *exchange.Request
	selector *objects.Selector
	table    *views.Table // nil unless Tables are requested
	socket   *socket      // nil for plain HTTP
	out      http.ResponseWriter
	control  *http.ResponseController
	counts   *requestmetrics.Watch
}

// start writes the head of the response, or opens the WebSocket. It returns the context of the
// stream. If it returns no stream and no error, it has responded already.
func (s *Streamer) start(ctx context.Context, w *exchange.Response, r *exchange.Request) (*stream, context.Context, error) {
	st := &stream{Streamer: s, request: r, out: w, control: http.NewResponseController(w), counts: s.o.Metrics.Watch(r.Version)}
	var err error
	if r.Media.View == media.Table {
		if st.table, err = s.o.Encoder.NewTable(r); err != nil {
			return nil, ctx, err
		}
	}
	if exchange.WantsWebSocket(r.HTTP) {
		if st.socket, ctx, err = st.openSocket(ctx, w); st.socket == nil {
			return nil, ctx, err
		}
	} else {
		w.Header().Set("Content-Type", r.Media.ContentType(s.o.Encoder.Names, true))
		r.Notes.WriteHeader(w.Header())
		w.WriteHeader(http.StatusOK)
	}
	r.Audit.Started(w.Code)
	return st, ctx, nil
}

// end closes the WebSocket. A plain response needs no end.
func (st *stream) end() {
	if st.socket != nil {
		st.socket.end()
	}
}
