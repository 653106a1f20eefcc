package exchange

import (
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Notes are the warnings and the audit annotations of a request. Admission may add to them
// from several goroutines. The zero Notes are empty.
type Notes struct {
	mu       sync.Mutex
	warnings []string
	size     int         // bytes of warnings, each counted up to shortWarning
	own      annotations // of the server and its plugins
	external annotations // of webhooks
	leftOut  int         // own annotations without room
}

// annotations is a bounded list of audit annotations, each key once.
type annotations struct {
	list []annotation
	size int // bytes
}

type annotation struct{ key, value string }

func (a annotation) size() int { return len(a.key) + len(a.value) }

// Bounds of the annotations of a request, over all its attempts and objects.
const (
	maxAnnotations     = 256
	maxAnnotationBytes = 512 << 10
	maxExternal        = 64
	maxExternalBytes   = 128 << 10
)

// Bounds of the warnings of a response, in bytes. If all warnings together are longer than
// allWarnings, each is cut to shortWarning.
const (
	allWarnings  = 4 << 10
	shortWarning = 256
)

// Warn adds a warning, unless the request has it already.
func (n *Notes) Warn(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.size < allWarnings && !slices.Contains(n.warnings, text) {
		n.warnings = append(n.warnings, cut(text, allWarnings+1))
		n.size += max(1, min(len(text), shortWarning))
	}
}

// Annotate sets an annotation of the audit event if there is room for it. It replaces an earlier
// value of the key, because a write that is retried after a conflict is admitted again.
func (n *Notes) Annotate(key, value string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.own.set(annotation{key, value}, maxAnnotations, maxAnnotationBytes) {
		n.leftOut++
	}
}

// AnnotateExternal is Annotate for annotations of webhooks, which have their own bounds. It reports
// whether there was room.
func (n *Notes) AnnotateExternal(key, value string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.external.set(annotation{key, value}, maxExternal, maxExternalBytes)
}

// set adds an annotation or replaces the value of its key, within bounds for the number of
// annotations and their bytes. It reports whether there was room.
func (s *annotations) set(a annotation, number, size int) bool {
	i := slices.IndexFunc(s.list, func(other annotation) bool { return other.key == a.key })
	grown := a.size()
	if i >= 0 {
		grown -= s.list[i].size()
	}
	if s.size+grown > size || i < 0 && len(s.list) == number {
		return false
	}
	if s.size += grown; i >= 0 {
		s.list[i] = a
	} else {
		s.list = append(s.list, a)
	}
	return true
}

// annotate calls f with all annotations, first with the server's own, and returns the number that
// had no room.
func (n *Notes) annotate(f func(key, value string)) (leftOut int) {
	n.mu.Lock()
	all, leftOut := slices.Concat(n.own.list, n.external.list), n.leftOut
	n.mu.Unlock()
	for _, a := range all {
		f(a.key, a.value)
	}
	return leftOut
}

// WriteHeader adds the warnings to the header of a response, as Warning headers with code 299
// (RFC 7234, 5.5).
func (n *Notes) WriteHeader(h http.Header) {
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

// cut returns at most the first n bytes of text.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "")
}

// quote returns text as a quoted string of HTTP, with quotes and backslashes escaped and
// spaces for control characters.
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
