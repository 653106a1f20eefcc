package apitest

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// Watcher reads the events of a watch in a test.
type Watcher struct {
	t      testing.TB
	body   io.ReadCloser
	decode *json.Decoder
}

// Event is a watch event.
type Event struct {
	Type   string
	Object map[string]any
}

// Name returns the name of the object.
func (w Event) Name() string { return NestedString(w.Object, "metadata", "name") }

// ResourceVersion returns metadata.resourceVersion of the object.
func (w Event) ResourceVersion() string { return NestedString(w.Object, "metadata", "resourceVersion") }

// String returns the event as "TYPE name".
func (w Event) String() string { return w.Type + " " + w.Name() }

// NewWatcher reads the watch events in the body of res, which it closes at the end of
// the test.
func NewWatcher(t testing.TB, res *http.Response) *Watcher {
	w := &Watcher{t, res.Body, json.NewDecoder(res.Body)}
	t.Cleanup(w.Close)
	return w
}

// Close ends the watch.
func (w *Watcher) Close() { _ = w.body.Close() }

// Next returns the next event.
func (w *Watcher) Next() Event {
	w.t.Helper()
	var e Event
	require.NoError(w.t, w.decode.Decode(&e))
	return e
}

// NextN returns the next n events, each as "TYPE name".
func (w *Watcher) NextN(n int) []string {
	w.t.Helper()
	list := make([]string, n)
	for i := range list {
		list[i] = w.Next().String()
	}
	return list
}

// ReadAll returns the remaining events of a watch that the server ends cleanly.
func (w *Watcher) ReadAll() []Event {
	w.t.Helper()
	var list []Event
	for {
		var e Event
		err := w.decode.Decode(&e)
		if errors.Is(err, io.EOF) {
			return list
		}
		require.NoError(w.t, err)
		list = append(list, e)
	}
}
