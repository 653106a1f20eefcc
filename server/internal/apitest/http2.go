package apitest

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net/http"
	"strings"
)

// Target is the URL of a server that serves TLS with HTTP/2.
type Target string

// HTTPClient returns a client with connections of its own.
func (t Target) HTTPClient() *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}}
}

// HTTP2Conn is a minimal HTTP/2 client for tests that keep many streams open.
type HTTP2Conn struct {
	*tls.Conn
	in          *bufio.Reader
	next        uint32
	User, Group string
}

// DialHTTP2 opens a connection. Each of its streams accepts window bytes.
func (t Target) DialHTTP2(window int) (*HTTP2Conn, error) {
	conn, err := tls.Dial("tcp", strings.TrimPrefix(string(t), "https://"), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		return nil, err
	}
	c := &HTTP2Conn{conn, bufio.NewReader(conn), 1, "intruder", ""}
	_, _ = io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	c.frame(4, 0, 0, binary.BigEndian.AppendUint32([]byte{0, 4}, uint32(window))) // SETTINGS_INITIAL_WINDOW_SIZE
	return c, nil
}

func (c *HTTP2Conn) frame(kind, flags byte, stream uint32, payload []byte) {
	f := append([]byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags}, binary.BigEndian.AppendUint32(nil, stream)...)
	_, _ = c.Write(append(f, payload...))
}

// Send opens a stream. If body is positive, the stream sends that many bytes of a
// request body and stays open.
func (c *HTTP2Conn) Send(method, path string, body int) {
	var h []byte
	for _, f := range [][2]string{
		{":method", method}, {":scheme", "https"}, {":authority", "example.com"}, {":path", path}, {"x-user", c.User}, {"x-group", c.Group},
		{"content-type", "application/json"},
	} {
		h = append(append(append(append(h, 0, byte(len(f[0]))), f[0]...), byte(len(f[1]))), f[1]...) // literal, not indexed
	}
	const endStream, endHeaders = 1, 4
	if body == 0 {
		c.frame(1, endHeaders|endStream, c.next, h)
	} else {
		c.frame(1, endHeaders, c.next, h)
		for sent := 0; sent < body; sent += 1000 {
			c.frame(0, 0, c.next, []byte(strings.Repeat(" ", min(1000, body-sent))))
		}
	}
	c.next += 2
}

// Await reads until the server ends a stream.
func (c *HTTP2Conn) Await() error {
	for {
		var head [9]byte
		if _, err := io.ReadFull(c.in, head[:]); err != nil {
			return err
		}
		if _, err := c.in.Discard(int(head[0])<<16 | int(head[1])<<8 | int(head[2])); err != nil {
			return err
		}
		switch kind, flags := head[3], head[4]; {
		case kind == 3, kind <= 1 && flags&1 != 0: // RST_STREAM, END_STREAM
			return nil
		case kind == 4 && flags == 0:
			c.frame(4, 1, 0, nil)
		}
	}
}
