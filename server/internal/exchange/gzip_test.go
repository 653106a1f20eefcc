package exchange

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/server/flowcontrol"
	"orch.io/controlplane/server/internal/capacity"
)

func TestAcceptsGzip(t *testing.T) {
	for header, want := range map[string]bool{
		"":                             false,
		"gzip":                         true,
		"x-gzip":                       true,
		"GZIP":                         true,
		"deflate, gzip":                true,
		"br":                           false,
		"*":                            true,
		"identity":                     false,
		"identity, *":                  true,
		"gzip;q=0":                     false,
		"gzip;q=0.0, *":                false,
		"*;q=0":                        false,
		"br;q=0.9, gzip ; Q=0.1":       true,
		"identity;q=0.5, gzip;q=0.4":   false,
		"identity;q=0.5, gzip;q=0.5":   true,
		"identity;q=0, gzip;q=0.1":     true,
		"gzip;q=2":                     false,
		"gzip;q=NaN":                   false,
		"gzip;q=":                      false,
		"gzip;level=1":                 true,
		"gzipped":                      false,
		strings.Repeat("a,", 1<<16):    false,
		strings.Repeat(",;q=;;,", 999): false,
	} {
		assert.Equal(t, want, acceptsGzip([]string{header}), "%.40q", header)
	}
	assert.True(t, acceptsGzip([]string{"br", "gzip"}), "two headers are one list")
	assert.False(t, acceptsGzip(nil))
}

func FuzzAcceptsGzip(f *testing.F) {
	f.Add("gzip;q=0.5, identity;q=0.2, *;q=0")
	f.Fuzz(func(t *testing.T, header string) {
		if acceptsGzip([]string{header}) {
			assert.Regexp(t, `(?i)gzip|\*`, header)
		}
	})
}

func TestIsRemote(t *testing.T) {
	for addr, want := range map[string]bool{
		"192.0.2.1:80": true, "[2001:db8::1]:80": true, "[::ffff:192.0.2.1]:80": true,
		"127.0.0.1:80": false, "127.8.8.8:80": false, "[::1]:80": false, "[::ffff:127.0.0.1]:80": false,
		"in-process": false, "@": false, "": false,
	} {
		assert.Equal(t, want, isRemote(addr), addr)
	}
}

// TestCompressorsAreBounded fills a user's share of the compressors: the user's next response is
// sent uncompressed, while another user's response is compressed.
func TestCompressorsAreBounded(t *testing.T) {
	limiter, err := capacity.New(capacity.Options{Names: names.Orch, Config: flowcontrol.Default(names.Orch), Metrics: prometheus.NewRegistry(), Seats: 10})
	require.NoError(t, err)
	s := &Responder{Compress: Compressor{From: 1}}
	open := func(user string) (io.WriteCloser, http.Header) {
		h := httptest.NewRequest("GET", "/", nil)
		h.Header.Set("Accept-Encoding", "gzip")
		w, r := s.New(httptest.NewRecorder(), h)
		r.Usage.Begin(limiter)
		r.Usage.Classify(auth.Attributes{User: &auth.User{Name: user, Groups: []string{auth.Authenticated}}, Verb: "get", Path: "/"}, w.Header())
		return w.encode(100), w.Header()
	}
	var bodies []io.WriteCloser
	for {
		body, h := open("a")
		if h.Get("Content-Encoding") != "gzip" {
			assert.Equal(t, "100", h.Get("Content-Length"))
			break
		}
		bodies = append(bodies, body)
		require.LessOrEqual(t, len(bodies), 32)
	}
	assert.NotEmpty(t, bodies)
	_, h := open("b")
	assert.Equal(t, "gzip", h.Get("Content-Encoding"))
	for _, b := range bodies {
		require.NoError(t, b.Close())
	}
	_, h = open("a")
	assert.Equal(t, "gzip", h.Get("Content-Encoding"))
}
