package exchange

import (
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/wellknown"
)

const protocolHeader = "Sec-WebSocket-Protocol"

// WantsWebSocket reports whether a request asks for a WebSocket (RFC 6455, 4.1).
func WantsWebSocket(h *http.Request) bool {
	return strings.EqualFold(h.Header.Get("Upgrade"), "websocket") && HasToken(h.Header, "Connection", "upgrade")
}

// WebSocketProtocols returns the subprotocols that a request for a WebSocket names.
func WebSocketProtocols(h http.Header) (list []string) {
	for _, line := range h.Values(protocolHeader) {
		for p := range strings.SplitSeq(line, ",") {
			list = append(list, strings.TrimSpace(p))
		}
	}
	return list
}

// MoveWebSocketToken moves a bearer token from the subprotocols into the Authorization header:
// scripts in a browser cannot set headers and send the token as a subprotocol. A further
// subprotocol is required, because the browser expects the response to select a subprotocol.
func (r *Request) MoveWebSocketToken(p names.Profile) error {
	if !WantsWebSocket(r.HTTP) || r.HTTP.Header.Get("Authorization") != "" {
		return nil
	}
	var rest []string
	token, prefix := "", p.Wire(wellknown.SocketBearer)
	for _, protocol := range WebSocketProtocols(r.HTTP.Header) {
		encoded, ok := strings.CutPrefix(protocol, prefix)
		if !ok {
			rest = append(rest, protocol)
			continue
		}
		text, err := base64.RawURLEncoding.DecodeString(encoded)
		if err != nil || len(text) == 0 || !utf8.Valid(text) || token != "" {
			return errors.New("invalid WebSocket request: more than one token, or a token that is not base64url")
		}
		token = string(text)
	}
	if token == "" {
		return nil
	}
	if len(rest) == 0 {
		return errors.New("invalid WebSocket request: a token without another subprotocol")
	}
	changed := *r.HTTP
	changed.Header = r.HTTP.Header.Clone()
	changed.Header.Set(protocolHeader, strings.Join(rest, ", "))
	changed.Header.Set("Authorization", "Bearer "+token)
	r.HTTP = &changed
	return nil
}

// DropWebSocketTokens removes the tokens among the subprotocols in a header. MoveWebSocketToken
// leaves them there if the request has another token or does not ask for a WebSocket.
func DropWebSocketTokens(h http.Header, p names.Profile) {
	all, prefix := WebSocketProtocols(h), p.Wire(wellknown.SocketBearer)
	rest := slices.DeleteFunc(slices.Clone(all), func(p string) bool {
		return len(p) >= len(prefix) && strings.EqualFold(p[:len(prefix)], prefix)
	})
	switch {
	case len(rest) == 0:
		h.Del(protocolHeader)
	case len(rest) < len(all):
		h.Set(protocolHeader, strings.Join(rest, ", "))
	}
}
