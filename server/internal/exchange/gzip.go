package exchange

import (
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"

	"orch.io/controlplane/server/internal/fairqueue"
)

// Compressor compresses responses with gzip if that is worthwhile: compression costs more than
// making the response.
type Compressor struct {
	From  int  // size in bytes from which responses are compressed; negative means never
	Local bool // also compress for clients on this machine

	writers sync.Pool // of *gzip.Writer
}

// encode sets the headers for the length and the encoding of the body, and returns the writer
// for the body, which the caller closes.
func (w *Response) encode(length int) io.WriteCloser {
	var out io.WriteCloser = plainBody{w}
	if w.Request.HTTP.Method == http.MethodHead {
		out = noBody{}
	}
	if w.Compresses(length) {
		if part, ok := w.Request.Usage.ReserveCompressor(); ok {
			w.Header().Set("Content-Encoding", "gzip")
			c := &w.server.Compress
			return gzipBody{c.open(out), c, part}
		}
	}
	w.Header().Set("Content-Length", strconv.Itoa(length))
	return out
}

// Compresses reports whether a body of length bytes is compressed. If that depends on the request,
// it adds a Vary header.
func (w *Response) Compresses(length int) bool {
	c, r := &w.server.Compress, w.Request.HTTP
	if c.From < 0 || length < c.From || !c.Local && !isRemote(r.RemoteAddr) {
		return false
	}
	w.Header().Add("Vary", "Accept-Encoding")
	return acceptsGzip(r.Header["Accept-Encoding"])
}

type plainBody struct{ *Response }

func (plainBody) Close() error { return nil }

// noBody discards the body of the response to a HEAD request.
type noBody struct{}

func (noBody) Write(b []byte) (int, error) { return len(b), nil }
func (noBody) Close() error                { return nil }

// gzipBody compresses the body, and holds a part of the compressors until Close.
type gzipBody struct {
	*gzip.Writer
	from *Compressor
	part fairqueue.Part
}

// open returns a gzip writer to w, which it reuses from an earlier response if possible.
func (c *Compressor) open(w io.Writer) *gzip.Writer {
	g, ok := c.writers.Get().(*gzip.Writer)
	if !ok {
		g, _ = gzip.NewWriterLevel(w, gzip.BestSpeed) // BestSpeed is a valid level
	}
	g.Reset(w)
	return g
}

// Close ends the body and keeps the writer for another response.
func (b gzipBody) Close() error {
	err := b.Writer.Close()
	b.Reset(io.Discard)
	b.from.writers.Put(b.Writer)
	b.part.Release()
	return err
}

// isRemote reports whether the address is of another machine.
func isRemote(addr string) bool {
	a, err := netip.ParseAddrPort(addr)
	return err == nil && !a.Addr().Unmap().IsLoopback()
}

// acceptsGzip reports whether Accept-Encoding headers allow gzip and do not prefer the identity
// encoding (RFC 9110, 12.5.3).
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

// quality returns the weight of a coding from its parameters: 1 if they have none, 0 if it is
// malformed.
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
