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
	size        int // bytes of warnings, cut to shortWarning
	annotations []annotation
	annotated   int // bytes of annotations
}

// annotation is one of the audit event.
type annotation struct{ key, value string }

func (a annotation) size() int { return len(a.key) + len(a.value) }

// Bounds of what one request gathers for the audit event.
const (
	maxAnnotations = 256
	maxAnnotated   = 512 << 10 // bytes
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
	is, was := annotation{key, value}, 0
	i := slices.IndexFunc(n.annotations, func(a annotation) bool { return a.key == key })
	if i >= 0 {
		was = n.annotations[i].size()
	}
	switch grown := is.size() - was; {
	case n.annotated+grown > maxAnnotated || i < 0 && len(n.annotations) == maxAnnotations:
		return
	case i >= 0:
		n.annotations[i] = is
		n.annotated += grown
	default:
		n.annotations = append(n.annotations, is)
		n.annotated += grown
	}
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
