package server_test

import (
	"strings"
	"sync"
)

// logs is what a server writes while a test reads it.
type logs struct {
	mu   sync.Mutex // guards text
	text strings.Builder
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
