package server

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/server/internal/exchange"
)

const (
	socketProtocols = "Sec-WebSocket-Protocol"
	// What one peer may send during a watch, where nothing is expected: bytes,
	// of which each frame takes some however short it is.
	maxReceived, frameCost = 1 << 20, 64
)

// wantsSocket reports whether a request asks for a WebSocket (RFC 6455, 4.1).
func wantsSocket(h *http.Request) bool {
	if !strings.EqualFold(h.Header.Get("Upgrade"), "websocket") {
		return false
	}
	return exchange.HasToken(h.Header, "Connection", "upgrade")
}

// protocols are the sub-protocols that a request for a WebSocket names.
func protocols(h http.Header) (list []string) {
	for _, line := range h.Values(socketProtocols) {
		for p := range strings.SplitSeq(line, ",") {
			list = append(list, strings.TrimSpace(p))
		}
	}
	return list
}

// readSocketToken moves the bearer token that scripts in a browser, which cannot
// set headers, send as a sub-protocol to where all others send theirs. Another
// sub-protocol must be left, since the browser wants one of its own back.
func (s *Server) readSocketToken(r *exchange.Request) error {
	if !wantsSocket(r.HTTP) || r.HTTP.Header.Get("Authorization") != "" {
		return nil
	}
	var rest []string
	token, prefix := "", s.names.Wire(names.SocketBearer)
	for _, p := range protocols(r.HTTP.Header) {
		encoded, ok := strings.CutPrefix(p, prefix)
		if !ok {
			rest = append(rest, p)
			continue
		}
		text, err := base64.RawURLEncoding.DecodeString(encoded)
		if err != nil || len(text) == 0 || !utf8.Valid(text) || token != "" {
			return errors.New("a WebSocket with more than one token, or one in no base64url")
		}
		token = string(text)
	}
	if token == "" {
		return nil
	}
	if len(rest) == 0 {
		return errors.New("a WebSocket with a token and no other sub-protocol")
	}
	changed := *r.HTTP
	changed.Header = r.HTTP.Header.Clone()
	changed.Header.Set(socketProtocols, strings.Join(rest, ", "))
	changed.Header.Set("Authorization", "Bearer "+token)
	r.HTTP = &changed
	return nil
}

// dropSocketTokens leaves out of the sub-protocols that a request names all that are tokens.
// Those of a request that had another token, or is for no WebSocket, were never looked at.
func (s *Server) dropSocketTokens(h http.Header) {
	all, prefix := protocols(h), s.names.Wire(names.SocketBearer)
	rest := slices.DeleteFunc(slices.Clone(all), func(p string) bool {
		return len(p) >= len(prefix) && strings.EqualFold(p[:len(prefix)], prefix)
	})
	switch {
	case len(rest) == 0:
		h.Del(socketProtocols)
	case len(rest) < len(all):
		h.Set(socketProtocols, strings.Join(rest, ", "))
	}
}

// socket is a watch's connection to a peer that speaks WebSocket: each event is
// a message, text or binary as its format is.
type socket struct {
	conn  *websocket.Conn
	below *exchange.Conn
	kind  websocket.MessageType
	skip  int           // bytes before the event in its frame
	done  chan struct{} // closed when nothing is received any more
	left  atomic.Int64  // of maxReceived
}

// openSocket makes the connection a WebSocket. The context that it returns ends
// also when the peer goes away. No error and no socket: the peer has been told
// what was wrong.
func (st *stream) openSocket(ctx context.Context, w *exchange.Response) (*socket, context.Context, error) {
	h := st.request.HTTP
	list := protocols(h.Header)
	switch {
	case !w.CanHijack():
		return nil, nil, meta.BadRequest("this connection cannot become a WebSocket")
	case !goodOrigin(h.Header.Get("Origin")):
		return nil, nil, meta.Forbidden(meta.GroupResource{}, "", "the origin is no address")
	case len(list) > 1:
		return nil, nil, meta.BadRequest("a WebSocket needs one sub-protocol or none")
	}
	k := &socket{kind: websocket.MessageText, done: make(chan struct{})}
	k.left.Store(maxReceived)
	if st.request.Media.Format == codec.Protobuf {
		k.kind, k.skip = websocket.MessageBinary, codec.ProtoFrameHead
	}
	st.request.Notes.WriteHeader(w.Header())
	var err error
	k.conn, err = websocket.Accept(upgrader{w, k}, h, &websocket.AcceptOptions{
		Subprotocols:       list,
		InsecureSkipVerify: true, // goodOrigin has looked
		OnPingReceived:     func(context.Context, []byte) bool { return k.received(0) },
		OnPongReceived:     func(context.Context, []byte) { k.received(0) },
	})
	if err != nil {
		st.server.log.Debug("no WebSocket", "path", st.request.Path, "error", err)
		return nil, nil, nil
	}
	st.request.Deadline.Restore()
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer close(k.done)
		defer cancel()
		k.drain()
	}()
	return k, ctx, nil
}

// goodOrigin reports whether an Origin header is one that a page with an address
// of its own sends, as consoles are; what is no browser sends none. Any address
// will do, so that a foreign page may watch by the browser's client certificate.
func goodOrigin(origin string) bool {
	if origin == "" {
		return true
	}
	_, err := url.ParseRequestURI(origin)
	return err == nil
}

// drain reads what the peer sends, which means nothing, so that its pings are
// answered and its end is seen. It returns when there is nothing more to read.
func (k *socket) drain() {
	for k.left.Load() > 0 {
		_, message, err := k.conn.Reader(context.Background())
		if err != nil {
			return
		}
		n, err := io.Copy(io.Discard, message)
		if !k.received(int(n)) || err != nil {
			return
		}
	}
}

// received counts a frame, and reports whether there may be another.
func (k *socket) received(size int) bool {
	return k.left.Add(-int64(size)-frameCost) > 0
}

// send sends one framed event. The write deadline of the request ends it.
func (k *socket) send(frame []byte) error {
	if len(frame) == 0 {
		return nil
	}
	return k.conn.Write(context.Background(), k.kind, frame[k.skip:])
}

// end says good-bye, and gives the peer a moment to do so.
func (k *socket) end() {
	code := websocket.StatusNormalClosure
	if k.left.Load() <= 0 {
		code = websocket.StatusPolicyViolation
	}
	stop := time.AfterFunc(exchange.Parting, k.below.Abort)
	defer stop.Stop()
	_ = k.conn.Close(code, "")
	<-k.done
}

// upgrader takes the connection of a response over for a socket.
type upgrader struct {
	*exchange.Response
	socket *socket
}

// Hijack implements http.Hijacker.
func (u upgrader) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := u.TakeOver()
	if err != nil {
		return nil, nil, err
	}
	u.socket.below = conn
	return conn, buffered, nil
}
