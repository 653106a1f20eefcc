package server

import (
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"

	"orch.io/controlplane/server/internal/fair"
)

// Bounds of compression.
const (
	gzipFrom   = 128 << 10 // the default of Serving.GzipFrom
	maxZipping = 32        // answers at a time, of about a MiB of memory each; more are sent as they are
)

// zipper compresses answers where that pays: it costs more than to make them.
type zipper struct {
	from    int  // bytes; negative: never
	near    bool // also for callers on this machine
	writers sync.Pool
}

// encode sets the header fields of an answer that tell its length and encoding
// and returns what its body is to be written to and closed.
func (s *Server) encode(w *response, r *request, length int) io.WriteCloser {
	h := r.http
	var out io.WriteCloser = plainBody{w}
	if h.Method == http.MethodHead {
		out = noBody{}
	}
	if s.zips(w, r, length) {
		if place, ok := s.zipping.Take(r.share.holder, 1); ok {
			w.Header().Set("Content-Encoding", "gzip")
			return zippedBody{s.zipper.open(out), &s.zipper, place}
		}
	}
	w.Header().Set("Content-Length", strconv.Itoa(length))
	return out
}

// zips reports whether an answer of a length is to be compressed, and says in its header
// what that depends on.
func (s *Server) zips(w *response, r *request, length int) bool {
	z := &s.zipper
	if z.from < 0 || length < z.from || !z.near && !isRemote(r.http.RemoteAddr) {
		return false
	}
	w.Header().Add("Vary", "Accept-Encoding")
	return acceptsGzip(r.http.Header["Accept-Encoding"])
}

type plainBody struct{ *response }

func (plainBody) Close() error { return nil }

// noBody is that of the answer to a HEAD, whose head is that of a GET.
type noBody struct{}

func (noBody) Write(b []byte) (int, error) { return len(b), nil }
func (noBody) Close() error                { return nil }

type zippedBody struct {
	*gzip.Writer
	zipper *zipper
	place  fair.Part
}

func (z *zipper) open(w io.Writer) *gzip.Writer {
	g, ok := z.writers.Get().(*gzip.Writer)
	if !ok {
		g, _ = gzip.NewWriterLevel(w, gzip.BestSpeed) // the level is one of its own
	}
	g.Reset(w)
	return g
}

// Close ends the body.
func (b zippedBody) Close() error {
	err := b.Writer.Close()
	b.Reset(io.Discard)
	b.zipper.writers.Put(b.Writer)
	b.place.Give()
	return err
}

// isRemote reports whether a peer is on another machine.
func isRemote(addr string) bool {
	a, err := netip.ParseAddrPort(addr)
	return err == nil && !a.Addr().Unmap().IsLoopback()
}

// acceptsGzip reports whether Accept-Encoding headers allow gzip and do not like
// the plain answer better (RFC 9110, 12.5.3).
func acceptsGzip(headers []string) bool {
	zipped, others, identity := -1.0, -1.0, 0.0
	for _, header := range headers {
		for part := range strings.SplitSeq(header, ",") {
			coding, params, _ := strings.Cut(part, ";")
			q := quality(params)
			switch strings.ToLower(strings.TrimSpace(coding)) {
			case "gzip", "x-gzip":
				zipped = max(zipped, q)
			case "*":
				others = q
			case "identity":
				identity = q
			}
		}
	}
	if zipped < 0 {
		zipped = others
	}
	return zipped > 0 && zipped >= identity
}

// quality reads the weight behind a coding; none is 1, one that cannot be read 0.
func quality(params string) float64 {
	name, value, ok := strings.Cut(params, "=")
	if !ok || !strings.EqualFold(strings.TrimSpace(name), "q") {
		return 1
	}
	q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	if err != nil || !(q >= 0 && q <= 1) {
		return 0
	}
	return q
}
