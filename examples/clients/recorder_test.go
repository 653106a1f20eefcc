package clients

import (
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"
)

const (
	patienceSpan = time.Minute
	tick         = 5 * time.Millisecond
)

var everything = labels.Everything()

// recorder is a transport that records requests.
type recorder struct {
	next http.RoundTripper
	mu   sync.Mutex
	seen []*http.Request
}

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	r.mu.Lock()
	r.seen = append(r.seen, req)
	r.mu.Unlock()
	return r.next.RoundTrip(req)
}

func (r *recorder) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = nil
}

func (r *recorder) requests() []*http.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.seen)
}

func (r *recorder) queries() []url.Values {
	var all []url.Values
	for _, req := range r.requests() {
		all = append(all, req.URL.Query())
	}
	return all
}
