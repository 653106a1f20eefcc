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

// EventType says what happened.
type EventType string

// The types of events. Synced has no object: it says that the objects that were there when
// the watch began have been told, each as Added.
const (
	Added    EventType = "ADDED"
	Modified EventType = "MODIFIED"
	Deleted  EventType = "DELETED"
	Synced   EventType = "SYNCED"
)

// WatchEvent is one event of a Watch. A Deleted has the object as it was last.
type WatchEvent[T any] struct {
	Type    EventType
	Object  *T
	Key     meta.Key
	Version string // of the server's state with this change: a watch from it goes on after
}

// Watch tells what happens to the objects. From a version, that of a Page or a WatchEvent, it
// tells what happened after; since "" is the objects that are there, Synced, and all that
// follows.
//
// A watch that breaks off goes on from where it was, so that each change is told once,
// and tries for as long as it takes. It ends when the context does, or with an error: of
// the first attempt, of a server that refuses it for good, or with the reason
// meta.ReasonExpired if changes were forgotten before they were told. Who needs to go on
// then starts over with "", as a Cache does.
func (o *Objects[T]) Watch(ctx context.Context, since string) iter.Seq2[WatchEvent[T], error] {
	return o.watch(ctx, since, func(string) {})
}

// watch is Watch, and tells of versions at which nothing happened to the objects.
func (o *Objects[T]) watch(ctx context.Context, since string, quiet func(version string)) iter.Seq2[WatchEvent[T], error] {
	return func(yield func(WatchEvent[T], error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		w := watch[T]{Objects: o, version: since, yield: yield, quiet: quiet}
		if err := w.run(ctx); err != nil && !w.stopped && ctx.Err() == nil {
			yield(WatchEvent[T]{}, err)
		}
	}
}

// watch is a Watch on its way.
type watch[T any] struct {
	*Objects[T]
	version string          // after which the next attempt goes on
	initial []WatchEvent[T] // what was there at the start, until it is whole
	begun   bool            // the server took an attempt
	cut     bool            // the attempt before ended before its time
	told    bool            // something came in this attempt
	stopped bool            // nobody wants more
	yield   func(WatchEvent[T], error) bool
	quiet   func(version string)
}

// errStopped ends a watch that nobody wants any more.
var errStopped = errors.New("nobody wants more")

func (w *watch[T]) run(ctx context.Context) error {
	for wait := firstPause; ; wait = min(2*wait, longestPause) {
		w.told = false
		at := time.Now()
		err := w.attempt(ctx)
		switch {
		case ctx.Err() != nil || w.stopped:
			return nil
		case final(err), err != nil && !w.begun:
			return err
		}
		if w.told || time.Since(at) > longestPause {
			wait = firstPause
		}
		w.conn.log().Debug("a watch goes on", "of", w.resource(), "after", w.version, "in", wait, "error", err)
		if pause(ctx, jitter(wait)) != nil {
			return nil
		}
	}
}

// final reports whether another attempt would fail like the one before.
func final(err error) bool {
	var s *meta.Status
	if !errors.As(err, &s) {
		return errors.Is(err, errTooLong) || errors.Is(err, errNoEvent)
	}
	return s.Code < 500 && s.Code != http.StatusTooManyRequests && s.Code != http.StatusRequestTimeout ||
		s.Details != nil && len(s.Details.Causes) > 0 && s.Details.Causes[0].Reason == meta.CauseTooLargeRV
}

// longestWatch is after how long the server ends a watch, at most twice that: what is
// broken without anybody noticing ends then.
const longestWatch = 5 * time.Minute

// attempt makes one request and tells what comes. The end of the answer is no error.
func (w *watch[T]) attempt(ctx context.Context) error {
	path, err := w.collection(w.namespace)
	if err != nil {
		return err
	}
	lasts, at := longestWatch+rand.N(longestWatch), time.Now()
	defer func() { w.cut = time.Since(at) < lasts-time.Second }() // the server counts whole seconds
	ctx, cancel := context.WithTimeout(ctx, lasts+longestPause)
	defer cancel()
	q := w.selection()
	q.Set("watch", "true")
	q.Set("allowWatchBookmarks", "true")
	q.Set("timeoutSeconds", strconv.Itoa(int(lasts/time.Second)))
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
	if w.cut && w.version != "" && w.behind(ctx) {
		return meta.Expired("the server does not know of version %s: it has lost what was written last", w.version)
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, maxEvent)
	lines.Split(splitEvents)
	for lines.Scan() {
		if err := w.frame(lines.Bytes()); err != nil {
			return err
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("an event of %s: %w", w.resource(), errTooLong)
	}
	return lines.Err()
}

// behind reports whether the server knows nothing as new as what was told: it began anew
// with less, after a restart. A watch of it would be silent until it has caught up.
func (w *watch[T]) behind(ctx context.Context) bool {
	_, page, err := w.WithLabels("").WithFields("").list(ctx, ListOptions{Limit: 1})
	if err != nil {
		return false // it need not let this user list
	}
	newest, err := strconv.ParseUint(page.Version, 10, 64)
	told, err2 := strconv.ParseUint(w.version, 10, 64)
	return err == nil && err2 == nil && newest < told
}

// splitEvents is bufio.ScanLines, but that half a line at the end is no event.
func splitEvents(data []byte, end bool) (advance int, line []byte, err error) {
	advance, line, err = bufio.ScanLines(data, end)
	if end && len(line) > 0 && line[0] == '{' && data[advance-1] != '\n' && !json.Valid(line) {
		return 0, nil, io.ErrUnexpectedEOF
	}
	return advance, line, err
}

// errNoEvent is of what comes where an event should.
var errNoEvent = errors.New("the server sends what is no event")

// frame takes one line of the answer.
func (w *watch[T]) frame(line []byte) error {
	if len(line) == 0 {
		return nil
	}
	var f struct {
		Type   string
		Object json.RawMessage
	}
	if err := json.Unmarshal(line, &f); err != nil {
		return fmt.Errorf("%w: %v", errNoEvent, err)
	}
	if f.Type == "ERROR" {
		var s status
		if err := json.Unmarshal(f.Object, &s); err != nil || s.Kind != "Status" {
			return fmt.Errorf("%w: %.100s", errNoEvent, line)
		}
		return s.err()
	}
	tree, err := w.parse(f.Object)
	if err != nil {
		return fmt.Errorf("%w: %v", errNoEvent, err)
	}
	obj := meta.NewObject(tree)
	switch t := EventType(f.Type); t {
	case Added, Modified, Deleted:
		return w.change(t, obj)
	case "BOOKMARK":
		w.told = true
		switch {
		case obj.ResourceVersion() == "":
			return fmt.Errorf("%w: no version in it", errNoEvent)
		case w.version != "":
			w.version = obj.ResourceVersion()
			w.quiet(w.version)
		case obj.Annotation(w.conn.Names.Wire(wellknown.InitialEventsEnd)) == "true":
			return w.synced(obj.ResourceVersion())
		}
		return nil
	default:
		return fmt.Errorf("%w: type %.100q", errNoEvent, f.Type)
	}
}

// change tells of a change, at once or with all that was there.
func (w *watch[T]) change(t EventType, obj *meta.Object) error {
	w.typed(obj)
	value, err := w.value(obj.Tree())
	if err != nil {
		return fmt.Errorf("%w: %v", errNoEvent, err)
	}
	e := WatchEvent[T]{t, value, meta.Key{Namespace: obj.Namespace(), Name: obj.Name()}, obj.ResourceVersion()}
	if e.Version == "" {
		return fmt.Errorf("%w: no version in it", errNoEvent)
	}
	w.told = true
	if w.version == "" {
		w.initial = append(w.initial, e)
		return nil
	}
	w.version = e.Version
	return w.tell(e)
}

func (w *watch[T]) tell(e WatchEvent[T]) error {
	if !w.yield(e, nil) {
		w.stopped = true
		return errStopped
	}
	return nil
}

// synced tells what was there at the start. From here on the watch can go on.
func (w *watch[T]) synced(version string) error {
	initial := w.initial
	w.initial, w.version = nil, version
	for _, e := range initial {
		if err := w.tell(e); err != nil {
			return err
		}
	}
	return w.tell(WatchEvent[T]{Type: Synced, Version: version})
}

// refusesInitialEvents reports whether a server says that it does not begin watches with
// what is there, as older ones do.
func refusesInitialEvents(err error) bool {
	var s *meta.Status
	if meta.ReasonOf(err) != meta.ReasonInvalid || !errors.As(err, &s) || s.Details == nil {
		return false
	}
	return slices.ContainsFunc(s.Details.Causes, func(c meta.StatusCause) bool {
		return c.Field == "sendInitialEvents" || c.Field == "resourceVersionMatch"
	})
}

// listFirst tells what is there by a list, for servers that do not begin watches with that.
func (w *watch[T]) listFirst(ctx context.Context) error {
	opts := ListOptions{Limit: pageSize}
	for {
		items, page, err := w.list(ctx, opts)
		if err != nil {
			return err
		}
		w.begun = true
		for _, item := range items {
			if err := w.change(Added, item); err != nil {
				return err
			}
		}
		if page.Continue == "" {
			if page.Version == "" {
				return fmt.Errorf("%w, but a list without a version", errNoEvent)
			}
			return w.synced(page.Version)
		}
		opts.Continue = page.Continue
	}
}
