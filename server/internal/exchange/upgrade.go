package exchange

import (
	"bufio"
	"net"
	"net/http"
	"strings"
	"time"

	"orch.io/controlplane/registry"
)

// Proxied reports whether the request is for a subresource that proxies requests of any method, to
// any path below it.
func (r *Request) Proxied() bool {
	return r.Sub != nil && r.Sub.Connect != nil && r.Sub.Connect.Style == registry.Proxies
}

// Upgrades reports whether a request that connects asks to change the protocol of its connection.
func (r *Request) Upgrades() bool {
	h := r.HTTP.Header
	return (r.Remote != nil || r.Sub.Connect.Style != registry.Reads) && h.Get("Upgrade") != "" && HasToken(h, "Connection", "upgrade")
}

// HasToken reports whether a header that is a list of tokens has the token.
func HasToken(h http.Header, name, token string) bool {
	for _, line := range h[name] {
		for w := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(w), token) {
				return true
			}
		}
	}
	return false
}

// CanHijack reports whether the connection of the response can be taken over.
func (w *Response) CanHijack() bool {
	for below := w.ResponseWriter; ; {
		if _, ok := below.(http.Hijacker); ok {
			return true
		}
		wrapper, ok := below.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return false
		}
		below = wrapper.Unwrap()
	}
}

// TakeOver hijacks the connection of the response. A final write deadline that is set already still
// applies.
func (w *Response) TakeOver() (*Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := w.Request.Deadline.Control.Hijack()
	if err != nil {
		return nil, nil, err
	}
	w.Request.Deadline.Restore()
	c := &Conn{conn, conn}
	if t, ok := conn.(interface{ NetConn() net.Conn }); ok {
		c.raw = t.NetConn()
	}
	return c, buffered, nil
}

// Conn is a hijacked connection. Close, which sends the end of TLS, waits for the peer at most for
// Parting.
type Conn struct {
	net.Conn
	raw net.Conn // below TLS
}

// Close implements net.Conn.
func (c *Conn) Close() error {
	stop := time.AfterFunc(CloseTimeout, c.Abort)
	defer stop.Stop()
	return c.Conn.Close()
}

// Abort closes the connection at once, without the end of TLS.
func (c *Conn) Abort() { _ = c.raw.Close() }
