package watchstream

import (
	"context"
	"errors"
	"slices"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/server/internal/objectcache"
	"orch.io/controlplane/server/internal/objects"
	"orch.io/controlplane/server/internal/views"
	"orch.io/controlplane/storage"
)

// bookmarkEvery is the interval of bookmarks on a watch without events.
const bookmarkEvery = time.Minute

// follow sends changes until the watch ends, with a flush after each batch. If the watch ends
// because its time is over or the server stops, a last bookmark has the revision from which the
// next watch continues. Without it, a client whose watch was short and without events would have to
// list again.
func (st *stream) follow(ctx context.Context, cursor *objectcache.Cursor, bookmarks bool) {
	quiet := time.Now() // time of the last event or bookmark
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
		case err == nil: // the cursor has moved on, so all of them must be sent
			var sent bool
			if sent, err = st.send(ctx, events); sent {
				quiet = time.Now()
			}
		case errors.Is(err, storage.ErrCompacted):
			st.counts.Slow.Inc()
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
		over := errors.Is(ended, context.DeadlineExceeded) || ended != nil && st.o.Lifetime.Ended()
		if bookmarks && (over || ended == nil && time.Since(quiet) >= bookmarkEvery) {
			st.bookmark(cursor.Revision(), false)
			quiet = time.Now()
		}
		if st.flush() != nil {
			return
		}
	}
}

// batch is the size in bytes from which collected events are written.
const batch = 32 << 10

// send writes the changes that match the watch's selection, and reports whether there are any.
func (st *stream) send(ctx context.Context, events []objectcache.Event) (bool, error) {
	events, err := st.selector.Narrow(ctx, events)
	if err != nil {
		return false, st.endWithError(ctx, nil, err)
	}
	return len(events) > 0, st.sendEvents(ctx, events)
}

// sendEvents writes changes. The framed bytes of an event are made once and shared by all watches.
func (st *stream) sendEvents(ctx context.Context, events []objectcache.Event) error {
	entries := make([]*objectcache.Entry, len(events))
	for i, e := range events {
		entries[i] = objectcache.ObjectOf(e)
	}
	entries, err := objects.InVersion(ctx, entries, st.request.Version)
	if err != nil {
		return st.endWithError(ctx, nil, err)
	}
	st.counts.Events.Add(float64(len(events)))
	var buf []byte
	for i, e := range events {
		frame, err := st.frame(e, entries[i])
		switch {
		case err != nil:
			return st.endWithError(ctx, buf, err)
		default:
			st.counts.Sizes.Observe(float64(len(frame)))
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

// frame returns the framed bytes of an event; shown is its entry in the version of the request.
// Tables are not shared between watches, because only the first table of a stream has column
// definitions.
func (st *stream) frame(e objectcache.Event, shown *objectcache.Entry) ([]byte, error) {
	kind := objectcache.TypeOf(e).String()
	if st.table != nil {
		return st.appendFramed(nil, kind, shown)
	}
	r := st.request
	return objectcache.Frame(e, views.EncodingKey(r.Version, r.Media), func() ([]byte, error) { return st.appendFramed(nil, kind, shown) })
}

// initialBatch is how many objects of the initial state are converted at a time.
const initialBatch = 500

// sendAll writes the initial state.
func (st *stream) sendAll(ctx context.Context, entries []*objectcache.Entry) error {
	for some := range slices.Chunk(entries, initialBatch) {
		selected, err := st.selector.Filter(ctx, some)
		if err != nil {
			return st.endWithError(ctx, nil, err)
		}
		shown, err := objects.InVersion(ctx, selected, st.request.Version)
		if err != nil {
			return st.endWithError(ctx, nil, err)
		}
		if err := st.sendSome(ctx, shown); err != nil {
			return err
		}
	}
	return nil
}

// sendSome writes objects of the initial state. Their framed bytes are not cached, because few
// watches begin at the same state.
func (st *stream) sendSome(ctx context.Context, entries []*objectcache.Entry) error {
	st.counts.Events.Add(float64(len(entries)))
	var buf []byte
	for i, e := range entries {
		var err error
		before := len(buf)
		if buf, err = st.appendFramed(buf, objectcache.Added.String(), e); err != nil {
			return st.endWithError(ctx, buf, err)
		}
		st.counts.Sizes.Observe(float64(len(buf) - before))
		if st.socket != nil || len(buf) >= batch || i == len(entries)-1 {
			if err := st.write(buf); err != nil {
				return err
			}
			buf = buf[:0]
		}
	}
	return nil
}

// appendFramed appends an entry, framed as an event.
func (st *stream) appendFramed(dst []byte, kind string, e *objectcache.Entry) ([]byte, error) {
	v, m := st.request.Version, st.request.Media
	if st.table == nil && views.AsStored(v, m) {
		dst = e.AppendJSON(codec.FrameHead(dst, kind))
		return append(dst, codec.FrameTail...), nil
	}
	var body []byte
	var err error
	if st.table != nil {
		body, err = st.table.Entries(st.request.HTTP.Context(), []*objectcache.Entry{e}, codec.ListMeta{ResourceVersion: objects.FormatRevision(e.Revision())})
	} else {
		body, err = st.o.Encoder.Entry(st.request.HTTP.Context(), e, v, m)
	}
	if err != nil {
		return dst, err
	}
	return append(dst, views.Frame(m, kind, body)...), nil
}

// write writes framed events; a WebSocket sends a single event at a time. The write deadline starts
// anew with each write.
func (st *stream) write(frames []byte) error {
	st.request.Deadline.Renew()
	if st.socket != nil {
		return st.socket.send(frames)
	}
	_, err := st.out.Write(frames)
	return err
}

// endWithError writes frames and ends the stream with an error, because an object cannot be sent.
// If ctx has ended, no error is sent.
func (st *stream) endWithError(ctx context.Context, frames []byte, err error) error {
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

// bookmark writes a BOOKMARK, which means that all events up to the revision were sent.
func (st *stream) bookmark(rev storage.Revision, initialEnd bool) {
	v := st.request.Version
	obj := &meta.Object{}
	obj.SetGVK(v.GVK())
	obj.SetResourceVersion(objects.FormatRevision(rev))
	if initialEnd {
		obj.Set(map[string]any{st.o.Encoder.Names.Wire(wellknown.InitialEventsEnd): "true"}, "metadata", "annotations")
	}
	var body []byte
	var err error
	if st.table != nil {
		body = st.table.Bookmark(obj)
	} else {
		body, err = st.o.Encoder.Object(obj, v, st.request.Media)
	}
	if err == nil {
		_ = st.write(views.Frame(st.request.Media, "BOOKMARK", body))
	}
}

// fail writes an ERROR event with a Status.
func (st *stream) fail(status *meta.Status) {
	body, err := codec.EncodeStatus(nil, status, st.request.Media.Format)
	if err == nil {
		_ = st.write(views.Frame(st.request.Media, "ERROR", body))
	}
}

func (st *stream) flush() error {
	if st.socket != nil {
		return nil // messages are not buffered
	}
	return st.control.Flush()
}
