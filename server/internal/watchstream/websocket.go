package watchstream

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/server/internal/exchange"
)

// The client of a watch is not expected to send anything. It may send maxReceived bytes, where each
// frame counts as frameCost additional bytes.
const maxReceived, frameCost = 1 << 20, 64

// socket is the WebSocket of a watch. Each event is a message, text or binary like its format.
type socket struct {
	conn  *websocket.Conn
	below *exchange.Conn
	kind  websocket.MessageType
	skip  int           // bytes of a frame before the event
	done  chan struct{} // closed when drain returns
	left  atomic.Int64  // bytes of maxReceived that remain
}

// openSocket upgrades the connection to a WebSocket. The returned context also ends when the client
// goes away. If openSocket returns no socket and no error, it has responded already.
func (st *stream) openSocket(ctx context.Context, w *exchange.Response) (*socket, context.Context, error) {
	h := st.request.HTTP
	list := exchange.WebSocketProtocols(h.Header)
	switch {
	case !w.CanHijack():
		return nil, nil, meta.BadRequest("this connection cannot become a WebSocket")
	case !validOrigin(h.Header.Get("Origin")):
		return nil, nil, meta.Forbidden(meta.GroupResource{}, "", "the Origin is not a URL")
	case len(list) > 1:
		return nil, nil, meta.BadRequest("a WebSocket must have at most one subprotocol")
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
		InsecureSkipVerify: true, // validOrigin checks it
		OnPingReceived:     func(context.Context, []byte) bool { return k.received(0) },
		OnPongReceived:     func(context.Context, []byte) { k.received(0) },
	})
	if err != nil {
		st.o.Log.Debug("WebSocket handshake failed", "path", st.request.Path, "error", err)
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

// validOrigin reports whether an Origin header is empty, as from programs, or a URL, as from the
// pages of consoles. Any URL is valid, so that a page of another site may watch with the
// browser's client certificate.
func validOrigin(origin string) bool {
	if origin == "" {
		return true
	}
	_, err := url.ParseRequestURI(origin)
	return err == nil
}

// drain reads and discards messages of the client, so that pings are answered and a close is
// noticed. It returns when the client has closed the WebSocket or sent too much.
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

// received counts a frame, and reports whether the client may send further frames.
func (k *socket) received(size int) bool {
	return k.left.Add(-int64(size)-frameCost) > 0
}

// send sends a framed event, bounded by the write deadline of the request.
func (k *socket) send(frame []byte) error {
	if len(frame) == 0 {
		return nil
	}
	return k.conn.Write(context.Background(), k.kind, frame[k.skip:])
}

// end closes the WebSocket, and waits briefly for the client to close it, too.
func (k *socket) end() {
	code := websocket.StatusNormalClosure
	if k.left.Load() <= 0 {
		code = websocket.StatusPolicyViolation
	}
	stop := time.AfterFunc(exchange.CloseTimeout, k.below.Abort)
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
