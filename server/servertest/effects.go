package servertest

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"orch.io/controlplane/api/meta"
)

// Answer refuses a request with a status, such as those of package meta.
func Answer(status *meta.Status) func(http.Handler) http.Handler {
	return func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { refuse(w, status) })
	}
}

// Conflict refuses a request with 409, as if somebody else had changed the object.
func Conflict(http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t := targetOf(r)
		refuse(w, meta.Conflict(meta.GroupResource{Group: t.Group, Resource: t.Resource}, t.Name,
			"the object has been modified; please apply your changes to the latest version and try again"))
	})
}

// Expired tells a watch or list that its resourceVersion is forgotten: 410, which a watch
// gets as an event.
func Expired(http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := meta.Expired("too old resource version: %s", r.URL.Query().Get("resourceVersion"))
		if targetOf(r).Verb != "watch" {
			refuse(w, status)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"type": "ERROR", "object": status.Object().Tree()})
	})
}

// Timeout carries a request out and then tells the client that it took too long: 504.
func Timeout(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(unheard{}, r)
		refuse(w, meta.Timeout("Timeout: request did not complete within the allotted timeout"))
	})
}

// Lost carries a request out and cuts the connection before the answer: the client does
// not learn what happened. On a socket that it used before, net/http repeats a read by itself.
func Lost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(unheard{}, r)
		abort()
	})
}

// Hang neither carries a request out nor answers, until the client gives up.
func Hang(http.Handler) http.Handler {
	return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err == nil { // before its end, net/http does not look whether the client is there
			<-r.Context().Done()
		}
		abort()
	})
}

// TooManyRequests refuses a request with 429, and says after how long to come back, in whole
// seconds. client-go does so by itself, up to ten times.
func TooManyRequests(after time.Duration) func(http.Handler) http.Handler {
	status := meta.Failure(http.StatusTooManyRequests, meta.ReasonTooManyRequests, "Too many requests, please try again later.")
	status.Details = &meta.Details{RetryAfterSeconds: int((after + time.Second - 1) / time.Second)}
	return Answer(status)
}

// InternalError refuses a request with 500.
func InternalError(http.Handler) http.Handler {
	return Answer(meta.Internal(errors.New("the test wants it")))(nil)
}

// Unavailable refuses a request with 503.
func Unavailable(http.Handler) http.Handler {
	return Answer(meta.Unavailable("the server is currently unable to handle the request"))(nil)
}

// Slow lets time pass before a request goes on.
func Slow(by time.Duration) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			timer := time.NewTimer(by)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-r.Context().Done():
			}
			next.ServeHTTP(w, r)
		})
	}
}

// Drop cuts the connection of a request that is not answered in a time, such as a watch.
func Drop(after time.Duration) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if c, ok := r.Context().Value(callKey{}).(*call); ok {
				defer time.AfterFunc(after, c.cut).Stop()
			}
			next.ServeHTTP(w, r)
		})
	}
}

// Truncate cuts the connection after some bytes of the body of the answer.
func Truncate(bytes int) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			half := &truncated{ResponseWriter: w, left: bytes}
			next.ServeHTTP(half, r)
			if half.cut {
				abort()
			}
		})
	}
}

// truncated passes some bytes on.
type truncated struct {
	http.ResponseWriter
	left int
	cut  bool
}

func (w *truncated) Write(b []byte) (int, error) {
	if len(b) <= w.left {
		w.left -= len(b)
		return w.ResponseWriter.Write(b)
	}
	w.cut = true
	n, err := w.ResponseWriter.Write(b[:w.left])
	w.left = 0
	if err == nil {
		err = http.NewResponseController(w.ResponseWriter).Flush()
	}
	return n, errors.Join(err, http.ErrAbortHandler)
}

func (w *truncated) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// unheard drops an answer.
type unheard struct{}

func (unheard) Header() http.Header         { return http.Header{} }
func (unheard) WriteHeader(int)             {}
func (unheard) Write(b []byte) (int, error) { return len(b), nil }

// abort ends a handler so that its connection is cut.
func abort() { panic(http.ErrAbortHandler) }

// refuse answers with a status. It is JSON, which every client reads.
func refuse(w http.ResponseWriter, status *meta.Status) {
	w.Header().Set("Content-Type", "application/json")
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(status.Details.RetryAfterSeconds))
	}
	w.WriteHeader(status.Code)
	_ = json.NewEncoder(w).Encode(status.Object().Tree())
}
