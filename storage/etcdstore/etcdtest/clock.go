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

// aheadKey is the variable in the environment of a member that says by how many seconds its clock is ahead.
const aheadKey = "ETCDTEST_AHEAD"

// Clock has the clock of a member go ahead of the machine's, or behind it if that is negative, from its next
// start on. It is in seconds.
func (m *Member) Clock(ahead time.Duration) {
	m.env = append(m.env, aheadKey+"="+strconv.Itoa(int(ahead/time.Second))) // the last one counts
}

// Go programs ask the kernel for the time without calling a library that could be replaced, so the server is
// built with a package time whose Now is the machine's and so many seconds more.
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

// clockOverlay writes to a directory what "go build" of a module needs for that package, and returns the file that
// says where it is.
func clockOverlay(dir, source string) (path string, err error) {
	env := exec.Command("go", "env", "GOROOT")
	env.Dir = source // which says what Go it is built by
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
		return "", fmt.Errorf("time.Now is not as it was in the Go that this was written for, and the clocks of members cannot be set")
	}
	files := map[string]string{
		"time.go":  strings.Replace(string(now), clockRead, clockRead+"\tsec += ahead\n", 1),
		"ahead.go": clockSet,
	}
	replace := map[string]string{}
	for name, text := range files {
		at := filepath.Join(dir, name)
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			return "", err
		}
		replace[filepath.Join(library, name)] = at
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, text, 0o644)
}
