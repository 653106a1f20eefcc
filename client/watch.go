package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/wellknown"
)

// EventType is the type of a WatchEvent.
type EventType string

// The types of events. Synced has no object: it follows the Added events of the objects that
// existed when the watch began.
const (
	Added    EventType = "ADDED"
	Modified EventType = "MODIFIED"
	Deleted  EventType = "DELETED"
	Synced   EventType = "SYNCED"
)

// WatchEvent is an event of a Watch. The Object of a Deleted event is its last state.
type WatchEvent[T any] struct {
	Type    EventType
	Object  *T
	Key     meta.Key
	Version string // resourceVersion, from which another Watch can continue after this event
}

// Watch iterates over the changes of the objects after a version, which a Page or a WatchEvent has.
// If since is "", the watch begins with the existing objects as Added events, followed by Synced.
//
// If the connection fails, the watch resumes where it was, so that each change is reported once,
// and retries without limit. It ends when the context ends, or with an error: if the first attempt
// fails, if the server refuses the watch permanently, or, with the reason meta.ReasonExpired, if
// the server has compacted changes before they were reported. To continue after ReasonExpired,
// start again with "", as Cache does.
func (o *Objects[T]) Watch(ctx context.Context, since string) iter.Seq2[WatchEvent[T], error] {
	return o.watch(ctx, since, func(string) {})
}

// watch is Watch that also calls bookmark with versions up to which no further object changed.
func (o *Objects[T]) watch(ctx context.Context, since string, bookmark func(version string)) iter.Seq2[WatchEvent[T], error] {
	return func(yield func(WatchEvent[T], error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		w := watch[T]{Objects: o, version: since, yield: yield, bookmark: bookmark}
		if err := w.run(ctx); err != nil && !w.stopped && ctx.Err() == nil {
			yield(WatchEvent[T]{}, err)
		}
	}
}

// watch is the state of a running Watch. It belongs to one goroutine.
type watch[T any] struct {
	*Objects[T]
	version  string          // from which the next attempt continues; "" until the initial objects are complete
	initial  []WatchEvent[T] // initial objects, until they are complete
	begun    bool            // the server accepted an attempt
	cut      bool            // the previous attempt ended early
	received bool            // the current attempt has received an event
	stopped  bool            // the consumer stopped the iteration
	yield    func(WatchEvent[T], error) bool
	bookmark func(version string)
}

// errStopped ends a watch after the consumer stopped the iteration.
var errStopped = errors.New("the consumer stopped the watch")

// run makes attempts until the watch ends.
func (w *watch[T]) run(ctx context.Context) error {
	for wait := minPause; ; wait = min(2*wait, maxPause) {
		w.received = false
		at := time.Now()
		err := w.attempt(ctx)
		switch {
		case ctx.Err() != nil || w.stopped:
			return nil
		case isPermanent(err), err != nil && !w.begun:
			return err
		}
		if w.received || time.Since(at) > maxPause {
			wait = minPause
		}
		w.conn.log().Debug("watch ended; it resumes after a pause", "resource", w.resource(), "version", w.version, "pause", wait, "error", err)
		if pause(ctx, jitter(wait)) != nil {
			return nil
		}
	}
}

// isPermanent reports whether a further attempt would fail with the same error.
func isPermanent(err error) bool {
	var s *meta.Status
	if !errors.As(err, &s) {
		return errors.Is(err, errTooLong) || errors.Is(err, errInvalidEvent)
	}
	return s.Code < 500 && s.Code != http.StatusTooManyRequests && s.Code != http.StatusRequestTimeout ||
		s.Details != nil && len(s.Details.Causes) > 0 && s.Details.Causes[0].Reason == meta.CauseTooLargeRV
}

// minWatchTime is the shortest timeout of an attempt; the longest is twice that. It bounds how long
// a connection that broke unnoticed goes undetected.
const minWatchTime = 5 * time.Minute

// attempt makes a watch request and handles its events. It returns nil if the response ends
// regularly.
func (w *watch[T]) attempt(ctx context.Context) error {
	path, err := w.collection(w.namespace)
	if err != nil {
		return err
	}
	timeout, at := minWatchTime+rand.N(minWatchTime), time.Now()
	defer func() { w.cut = time.Since(at) < timeout-time.Second }() // the timeout is sent in whole seconds
	ctx, cancel := context.WithTimeout(ctx, timeout+maxPause)
	defer cancel()
	q := w.selection()
	q.Set("watch", "true")
	q.Set("allowWatchBookmarks", "true")
	q.Set("timeoutSeconds", strconv.Itoa(int(timeout/time.Second)))
	if w.version == "" {
		w.initial = nil
		q.Set("sendInitialEvents", "true")
		q.Set("resourceVersionMatch", "NotOlderThan")
	} else {
		q.Set("resourceVersion", w.version)
	}
	res, err := w.conn.send(ctx, request{method: http.MethodGet, path: path, query: q})
	if w.version == "" && refusesInitialEvents(err) {
		return w.listFirst(ctx)
	}
	if err != nil {
		return err
	}
	defer res.Body.Close()
	w.begun = true
	if w.cut && w.version != "" && w.serverBehind(ctx) {
		return meta.Expired("the server's state is older than resourceVersion %s: it has lost its latest writes", w.version)
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, maxEvent)
	lines.Split(splitEvents)
	for lines.Scan() {
		if err := w.handleLine(lines.Bytes()); err != nil {
			return err
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("event of %s: %w", w.resource(), errTooLong)
	}
	return lines.Err()
}

// serverBehind reports whether the newest version of the server is older than w.version, because it
// restarted and lost its latest writes. A watch from w.version would stay silent until the server
// has reached that version again.
func (w *watch[T]) serverBehind(ctx context.Context) bool {
	_, page, err := w.WithLabels("").WithFields("").list(ctx, ListOptions{Limit: 1})
	if err != nil {
		return false // this user may lack permission to list
	}
	newest, err := strconv.ParseUint(page.Version, 10, 64)
	seen, err2 := strconv.ParseUint(w.version, 10, 64)
	return err == nil && err2 == nil && newest < seen
}

// splitEvents is a bufio.SplitFunc like bufio.ScanLines, except that an incomplete line at the end
// is an error.
func splitEvents(data []byte, end bool) (advance int, line []byte, err error) {
	advance, line, err = bufio.ScanLines(data, end)
	if end && len(line) > 0 && line[0] == '{' && data[advance-1] != '\n' && !json.Valid(line) {
		return 0, nil, io.ErrUnexpectedEOF
	}
	return advance, line, err
}

// errInvalidEvent is returned if the server sends an invalid event.
var errInvalidEvent = errors.New("invalid watch event")

// handleLine handles a line of the response.
func (w *watch[T]) handleLine(line []byte) error {
	if len(line) == 0 {
		return nil
	}
	var f struct {
		Type   string
		Object json.RawMessage
	}
	if err := json.Unmarshal(line, &f); err != nil {
		return fmt.Errorf("%w: %v", errInvalidEvent, err)
	}
	if f.Type == "ERROR" {
		var s status
		if err := json.Unmarshal(f.Object, &s); err != nil || s.Kind != "Status" {
			return fmt.Errorf("%w: %.100s", errInvalidEvent, line)
		}
		return s.err()
	}
	tree, err := w.parse(f.Object)
	if err != nil {
		return fmt.Errorf("%w: %v", errInvalidEvent, err)
	}
	obj := meta.NewObject(tree)
	switch t := EventType(f.Type); t {
	case Added, Modified, Deleted:
		return w.handleChange(t, obj)
	case "BOOKMARK":
		w.received = true
		switch {
		case obj.ResourceVersion() == "":
			return fmt.Errorf("%w: it has no resourceVersion", errInvalidEvent)
		case w.version != "":
			w.version = obj.ResourceVersion()
			w.bookmark(w.version)
		case obj.Annotation(w.conn.Names.Wire(wellknown.InitialEventsEnd)) == "true":
			return w.synced(obj.ResourceVersion())
		}
		return nil
	default:
		return fmt.Errorf("%w: type %.100q", errInvalidEvent, f.Type)
	}
}

// handleChange reports a change, or keeps it until the initial objects are complete.
func (w *watch[T]) handleChange(t EventType, obj *meta.Object) error {
	w.setType(obj)
	value, err := w.value(obj.Tree())
	if err != nil {
		return fmt.Errorf("%w: %v", errInvalidEvent, err)
	}
	e := WatchEvent[T]{t, value, meta.Key{Namespace: obj.Namespace(), Name: obj.Name()}, obj.ResourceVersion()}
	if e.Version == "" {
		return fmt.Errorf("%w: it has no resourceVersion", errInvalidEvent)
	}
	w.received = true
	if w.version == "" {
		w.initial = append(w.initial, e)
		return nil
	}
	w.version = e.Version
	return w.emit(e)
}

// emit passes an event to the consumer. It returns errStopped if the consumer stops the iteration.
func (w *watch[T]) emit(e WatchEvent[T]) error {
	if !w.yield(e, nil) {
		w.stopped = true
		return errStopped
	}
	return nil
}

// synced reports the initial objects, which are complete as of version, and Synced. From then on,
// attempts resume from w.version.
func (w *watch[T]) synced(version string) error {
	initial := w.initial
	w.initial, w.version = nil, version
	for _, e := range initial {
		if err := w.emit(e); err != nil {
			return err
		}
	}
	return w.emit(WatchEvent[T]{Type: Synced, Version: version})
}

// refusesInitialEvents reports whether an error means that the server does not support
// sendInitialEvents, which older servers lack.
func refusesInitialEvents(err error) bool {
	var s *meta.Status
	if meta.ReasonOf(err) != meta.ReasonInvalid || !errors.As(err, &s) || s.Details == nil {
		return false
	}
	return slices.ContainsFunc(s.Details.Causes, func(c meta.StatusCause) bool {
		return c.Field == "sendInitialEvents" || c.Field == "resourceVersionMatch"
	})
}

// listFirst reports the initial objects by a list, for servers that do not support
// sendInitialEvents.
func (w *watch[T]) listFirst(ctx context.Context) error {
	opts := ListOptions{Limit: pageSize}
	for {
		items, page, err := w.list(ctx, opts)
		if err != nil {
			return err
		}
		w.begun = true
		for _, item := range items {
			if err := w.handleChange(Added, item); err != nil {
				return err
			}
		}
		if page.Continue == "" {
			if page.Version == "" {
				return fmt.Errorf("%w: the list has no resourceVersion", errInvalidEvent)
			}
			return w.synced(page.Version)
		}
		opts.Continue = page.Continue
	}
}
