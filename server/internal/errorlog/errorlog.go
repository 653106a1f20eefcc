// Package errorlog logs the server's own errors and panics at a bounded rate.
package errorlog

import (
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"
)

// Log logs errors of the server. Callers can make requests fail without end, so Log writes
// only the first errors of each cause in a minute. It counts the others and logs their number
// with the first error of a later minute, or on Close.
//
// A cause is a kind of error and its subject, such as a resource or a function. Both must come
// from bounded sets, never from values that callers choose.
//
// Methods may be called concurrently.
type Log struct {
	Logger *slog.Logger
	Panics func(where string) // counts a panic

	mu     sync.Mutex // not held while logging
	window window
}

// window counts the errors since began, by kind and subject.
type window struct {
	began time.Time
	count map[string]map[string]int
}

// Bounds of a window. Further subjects of a kind are counted as one cause.
const (
	maxPerCause  = 10
	maxPerKind   = 20
	otherSubject = "any other"
)

// Report logs an error, unless too many errors of its kind and subject were logged within the
// last minute. attrs are attributes as for slog.Logger.Error.
func (l *Log) Report(kind, subject, message string, attrs ...any) {
	l.mu.Lock()
	var last window
	if time.Since(l.window.began) >= time.Minute {
		last, l.window = l.window, window{time.Now(), map[string]map[string]int{}}
	}
	count := l.window.count[kind]
	if count == nil {
		count = map[string]int{}
		l.window.count[kind] = count
	}
	if count[subject] == 0 && len(count) >= maxPerKind {
		subject = otherSubject
	}
	count[subject]++
	n := count[subject]
	l.mu.Unlock()
	last.logSuppressed(l.Logger)
	if n == maxPerCause {
		attrs = append(attrs, "more", "of this cause are left out for a minute")
	}
	if n <= maxPerCause {
		l.Logger.Error(message, attrs...)
	}
}

// Panic logs and counts a panic. The deferred function that recovered the panic calls it, so
// that the stack is still the stack of the panic. where names the part of the server that
// panicked, as metrics show it.
func (l *Log) Panic(where string, value any, attrs ...any) {
	l.PanicAt(where, value, debug.Stack(), attrs...)
}

// PanicAt is Panic for a panic that was recovered earlier, with the stack of that time.
func (l *Log) PanicAt(where string, value any, stack []byte, attrs ...any) {
	l.Panics(where)
	l.Report("panic in "+where, panickedFunction(stack), "recovered from a panic", append([]any{"in", where, "panic", value, "stack", string(stack)}, attrs...)...)
}

// Close logs how many errors were left out of the current window.
func (l *Log) Close() {
	l.mu.Lock()
	last := l.window
	l.window = window{}
	l.mu.Unlock()
	last.logSuppressed(l.Logger)
}

func (w window) logSuppressed(log *slog.Logger) {
	for _, kind := range slices.Sorted(maps.Keys(w.count)) {
		for _, subject := range slices.Sorted(maps.Keys(w.count[kind])) {
			if n := w.count[kind][subject] - maxPerCause; n > 0 {
				log.Error("failures were left out of the log", "cause", kind+" of "+subject, "count", n, "since", w.began)
			}
		}
	}
}

// panickedFunction returns the name of the function that panicked, read from the stack at the
// time of recovery.
func panickedFunction(stack []byte) string {
	_, below, _ := strings.Cut(string(stack), "\npanic(")
	for line := range strings.Lines(below) {
		call := strings.LastIndexByte(line, '(')
		if call > 0 && line[0] != '\t' && !strings.HasPrefix(line, "runtime.") {
			return line[:call]
		}
	}
	return "an unknown function"
}
