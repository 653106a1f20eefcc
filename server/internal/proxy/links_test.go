package proxy_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/server/internal/apitest"
)

// site is a pod of this name that serves with a handler.
func (c *cluster) site(serve http.HandlerFunc) (root string) {
	s := httptest.NewServer(serve)
	c.T.Cleanup(s.Close)
	c.hasAddress("web", s.Listener.Addr())
	return apitest.PodsPath + "/web/proxy"
}

// TestProxiedLinksPointThroughTheProxy: links in a proxied HTML page point through the proxy.
func TestProxiedLinksPointThroughTheProxy(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	var page, kind, encoding string
	code := 200
	root := c.site(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Content-Encoding", encoding)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, strings.ReplaceAll(page, "OWN", r.Context().Value(http.LocalAddrContextKey).(interface{ String() string }).String()))
	})
	for _, x := range []struct{ page, want string }{
		{`<a href="/x">y</a>`, `<a href="` + root + `/x">y</a>`},
		{`<A  HREF='/x/?a=1&b=2#c' id=z>`, `<a href="` + root + `/x/?a=1&amp;b=2#c" id="z">`},
		{`<img src=/x/../../y><form action=/><br/>`, `<img src="` + root + `/y"><form action="` + root + `/"><br/>`},
		{`<link href="/x"/>`, `<link href="` + root + `/x"/>`},
		{`<a href="http://OWN/x">`, `<a href="` + root + `/x">`},
		{`<a href="` + c.Base + `/x">`, `<a href="` + c.Base + root + `/x">`}, // by the name that the caller knows
		{`<a href="` + root + `/x">`, `<a href="` + root + `/x">`},
		{`<A HREF=x>`, `<A HREF=x>`},
		{`<a href="//else/x"><a href="http://else/x"><a href="#x"><a href="data:,/x"><a href="/%zz">`,
			`<a href="//else/x"><a href="http://else/x"><a href="#x"><a href="data:,/x"><a href="/%zz">`},
		{`<p title="/x"><!-- <a href="/x"> --><script>'<a href="/x">'</script>`, `<p title="/x"><!-- <a href="/x"> --><script>'<a href="/x">'</script>`},
		{"<!DOCTYPE html>\x00\xff<a href=\"/x", "<!DOCTYPE html>\x00\xff<a href=\"/x"},
	} {
		page, kind, encoding, code = x.page, "text/html; charset=utf-8", "", 200
		got := c.Do("GET", root+"/p", nil)
		assert.Equal(t, x.want, string(got.Raw), x.page)
		kind, code = "text/html", 404
		assert.Equal(t, x.want, string(c.Do("GET", root+"/p", nil).Raw), x.page)
		page, kind, code = strings.ReplaceAll(x.page, "OWN", "else"), "text/plain", 200
		assert.Equal(t, page, string(c.Do("GET", root+"/p", nil).Raw))
		kind, code = "text/html", 206 // what is only a part cannot be read
		assert.Equal(t, page, string(c.Do("GET", root+"/p", nil).Raw))
		encoding, code = "br", 200
		assert.Equal(t, page, string(c.Do("GET", root+"/p", nil).Raw))
	}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write([]byte(`<a href="/x">`))
	require.NoError(t, z.Close())
	page, kind, encoding = zipped.String(), "text/html", "gzip"
	got := c.Do("GET", root+"/p", nil, "Accept-Encoding", "gzip")
	assert.Equal(t, `<a href="`+root+`/x">`, string(got.Raw))
	assert.Empty(t, got.Header.Get("Content-Encoding"))
	head := c.Must(200, "HEAD", root+"/p", nil)
	assert.Empty(t, head.Header.Get("Content-Length"))
	page = "no archive"
	assert.Equal(t, "error trying to reach service: gzip: invalid header", c.Must(503, "GET", root+"/p", nil).Body["message"])
}

// TestProxiedPagesAreStreamed: a proxied page is forwarded while it arrives, and an endless one is
// not buffered.
func TestProxiedPagesAreStreamed(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	more := make(chan string)
	root := c.site(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		for text := range more {
			_, _ = io.WriteString(w, text)
			_ = http.NewResponseController(w).Flush()
		}
	})
	req, err := http.NewRequest("GET", c.Base+root+"/", nil)
	require.NoError(t, err)
	sent := make(chan struct{})
	go func() { more <- `<a href="/x">`; close(sent) }()
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	want := `<a href="` + root + `/x">`
	begin := make([]byte, len(`<a href="/x">`))
	_, err = io.ReadFull(res.Body, begin)
	require.NoError(t, err)
	assert.Equal(t, want[:len(begin)], string(begin))
	<-sent
	long := strings.Repeat("x", 1<<20)
	go func() {
		more <- `<a title="`
		for range 64 {
			more <- long
		}
		more <- `" href="/y">`
		close(more)
	}()
	rest, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	assert.Equal(t, len(want)-len(begin)+len(`<a title="" href="/y">`)+64<<20, len(rest))
	assert.True(t, strings.HasSuffix(string(rest), `x" href="/y">`))
}
