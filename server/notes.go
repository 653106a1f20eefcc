package server

import (
	"net/http"
	"slices"
	"strings"
	"sync"
)

// notes are what a request gathers besides its answer.
type notes struct {
	mu          sync.Mutex // admission may warn from several goroutines
	warnings    []string
	size        int         // bytes of warnings, cut to shortWarning
	annotations annotations // what the server says
	external    annotations // what others say that it asks
	leftOut     int         // of annotations
}

// annotations are some of the audit event.
type annotations struct {
	list []annotation
	size int // bytes
}

type annotation struct{ key, value string }

func (a annotation) size() int { return len(a.key) + len(a.value) }

// Bounds of what one request gathers for the audit event, in all its attempts and about
// all its objects.
const (
	maxAnnotations = 256
	maxAnnotated   = 512 << 10 // bytes
	maxExternal    = 64        // annotations
	maxExternally  = 128 << 10 // bytes of these
)

// Bounds of the warnings of one answer, in bytes: when they are more than
// allWarnings together, each is cut to shortWarning.
const (
	allWarnings  = 4 << 10
	shortWarning = 256
)

// Warn adds a warning that is not there yet.
func (n *notes) Warn(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.size < allWarnings && !slices.Contains(n.warnings, text) {
		n.warnings = append(n.warnings, cut(text, allWarnings+1))
		n.size += max(1, min(len(text), shortWarning))
	}
}

// Annotate records a key and value in the audit event, as far as there is room. Of one
// key the last value stays: who writes again after a conflict is admitted again.
func (n *notes) Annotate(key, value string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.annotations.set(annotation{key, value}, maxAnnotations, maxAnnotated) {
		n.leftOut++
	}
}

// AnnotateExternal is Annotate with what others say, which has a room of its own, and
// reports whether there was any left.
func (n *notes) AnnotateExternal(key, value string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.external.set(annotation{key, value}, maxExternal, maxExternally)
}

// set adds an annotation, or replaces that of the same key, within bounds.
func (s *annotations) set(a annotation, length, size int) bool {
	i := slices.IndexFunc(s.list, func(other annotation) bool { return other.key == a.key })
	grown := a.size()
	if i >= 0 {
		grown -= s.list[i].size()
	}
	if s.size+grown > size || i < 0 && len(s.list) == length {
		return false
	}
	if s.size += grown; i >= 0 {
		s.list[i] = a
	} else {
		s.list = append(s.list, a)
	}
	return true
}

// header writes the warnings as Warning headers, code 299 (RFC 7234, 5.5).
func (n *notes) header(h http.Header) {
	n.mu.Lock()
	defer n.mu.Unlock()
	total, sent := 0, 0
	for _, text := range n.warnings {
		total += len(text)
	}
	for _, text := range n.warnings {
		if total > allWarnings {
			text = cut(text, shortWarning)
		}
		if sent += len(text); sent-len(text) < allWarnings {
			h.Add("Warning", `299 - `+quote(text))
		}
	}
}

// cut returns at most n bytes of text.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "")
}

// quote makes text a quoted string of HTTP: no control characters, quotes and
// backslashes escaped.
func quote(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			b.WriteByte(' ')
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
