package etcdtest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// aheadKey is the environment variable that holds the number of seconds by which the clock of a member
// is ahead.
const aheadKey = "ETCDTEST_AHEAD"

// Clock sets the clock of the member ahead of the machine's clock from the next start on, or behind it
// if ahead is negative. It is rounded down to seconds.
func (m *Member) Clock(ahead time.Duration) {
	m.env = append(m.env, aheadKey+"="+strconv.Itoa(int(ahead/time.Second))) // the last one counts
}

// A Go program reads the time from the kernel without a library that could be replaced, so the server
// is built with a package time whose Now adds a number of seconds.
const (
	clockRead = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	clockSet  = `package time

import "syscall"

var ahead = func() (seconds int64) {
	text, _ := syscall.Getenv("` + aheadKey + `")
	behind := len(text) > 0 && text[0] == '-'
	for _, digit := range []byte(text) {
		if '0' <= digit && digit <= '9' {
			seconds = 10*seconds + int64(digit-'0')
		}
	}
	if behind {
		return -seconds
	}
	return seconds
}()
`
)

// clockOverlay writes the changed files of package time and an overlay file for "go build -overlay" to
// dir, and returns the path of the overlay file.
func clockOverlay(dir, source string) (path string, err error) {
	env := exec.Command("go", "env", "GOROOT")
	env.Dir = source // whose go.mod selects the Go version
	root, err := env.Output()
	if err != nil {
		return "", fmt.Errorf("find the sources of Go: %w", err)
	}
	library := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	now, err := os.ReadFile(filepath.Join(library, "time.go"))
	if err != nil {
		return "", err
	}
	if !strings.Contains(string(now), clockRead) {
		return "", fmt.Errorf("time.Now of this Go version differs from the expected source, so clocks of members cannot be set")
	}
	files := map[string]string{
		"time.go":  strings.Replace(string(now), clockRead, clockRead+"\tsec += ahead\n", 1),
		"ahead.go": clockSet,
	}
	replace := map[string]string{}
	for name, text := range files {
		target := filepath.Join(dir, name)
		if err := os.WriteFile(target, []byte(text), 0o644); err != nil {
			return "", err
		}
		replace[filepath.Join(library, name)] = target
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, text, 0o644)
}
