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

// Respond returns an effect that refuses a request with a status, for example one of package meta.
func Respond(status *meta.Status) func(http.Handler) http.Handler {
	return func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { refuse(w, status) })
	}
}

// Conflict is an effect that refuses a request with 409, as if another client had changed the object.
func Conflict(http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t := targetOf(r)
		refuse(w, meta.Conflict(meta.GroupResource{Group: t.Group, Resource: t.Resource}, t.Name,
			"the object has been modified; please apply your changes to the latest version and try again"))
	})
}

// Expired is an effect that reports the resourceVersion of a list or watch as too old, with 410. A watch gets
// it as an error event.
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

// Timeout is an effect that executes a request and then answers 504, as if it had taken too long.
func Timeout(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(discard{}, r)
		refuse(w, meta.Timeout("Timeout: request did not complete within the allotted timeout"))
	})
}

// LoseResponse is an effect that executes a request and cuts the connection before the answer. net/http retries a
// read by itself if the connection was used before.
func LoseResponse(next http.Handler) http.Handler {
	return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(discard{}, r)
		abort()
	})
}

// Hang is an effect that blocks a request, without executing it, until the client cancels it or the fault is
// stopped.
func Hang(http.Handler) http.Handler {
	return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err == nil { // net/http detects that the client is gone only after the body was read
			<-r.Context().Done()
		}
		abort()
	})
}

// TooManyRequests returns an effect that refuses a request with 429 and a Retry-After, rounded up to seconds.
// client-go retries by itself up to ten times.
func TooManyRequests(after time.Duration) func(http.Handler) http.Handler {
	status := meta.Failure(http.StatusTooManyRequests, meta.ReasonTooManyRequests, "Too many requests, please try again later.")
	status.Details = &meta.StatusDetails{RetryAfterSeconds: int((after + time.Second - 1) / time.Second)}
	return Respond(status)
}

// InternalError is an effect that refuses a request with 500.
func InternalError(http.Handler) http.Handler {
	return Respond(meta.Internal(errors.New("injected by the test")))(nil)
}

// Unavailable is an effect that refuses a request with 503.
func Unavailable(http.Handler) http.Handler {
	return Respond(meta.Unavailable("the server is currently unable to handle the request"))(nil)
}

// Slow returns an effect that delays a request. The delay ends early with the context of the request.
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

// DropConnection returns an effect that cuts the connection of a request, such as a watch, that is not complete after a
// time.
func DropConnection(after time.Duration) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if c, ok := r.Context().Value(callKey{}).(*call); ok {
				defer time.AfterFunc(after, c.cut).Stop()
			}
			next.ServeHTTP(w, r)
		})
	}
}

// Truncate returns an effect that cuts the connection after the given number of bytes of the response body.
func Truncate(bytes int) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			tw := &truncated{ResponseWriter: w, left: bytes}
			next.ServeHTTP(tw, r)
			if tw.cut {
				abort()
			}
		})
	}
}

// truncated is a ResponseWriter that writes the first left bytes and then aborts.
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

// discard is a ResponseWriter that discards the response.
type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) WriteHeader(int)             {}
func (discard) Write(b []byte) (int, error) { return len(b), nil }

// abort panics so that net/http cuts the connection of the request.
func abort() { panic(http.ErrAbortHandler) }

// refuse writes a status as JSON, which every client accepts.
func refuse(w http.ResponseWriter, status *meta.Status) {
	w.Header().Set("Content-Type", "application/json")
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(status.Details.RetryAfterSeconds))
	}
	w.WriteHeader(status.Code)
	_ = json.NewEncoder(w).Encode(status.Object().Tree())
}
