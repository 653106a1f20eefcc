package recordings_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
)

var update = flag.Bool("update", false, "write what the server answers into testdata/transcripts")

// TestTranscripts sends the requests in testdata/transcripts, each file to a server
// of its own, and compares the answers that stand below them. A file is made of
//
//	# a comment, or an empty line
//	~ 10m                    time passes
//	> VERB path              a request,
//	> Header: value          its headers
//	body                     and its body; then the answer:
//	< 200 application/json
//	< Header: value
//	body
//
// Versions, uids and continue tokens are words with a number, by first appearance
// in the file; requests may use them. Times are TIME. JSON is indented, watch events
// are a line each. After each request the background loops finish what they have to do.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/transcripts/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			var got string
			synctest.Test(t, func(t *testing.T) { got = replay(t, string(want)) })
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
				return
			}
			assert.Equal(t, string(want), got, "go test ./server/internal/recordings -run TestTranscripts -update writes it anew")
		})
	}
}

// replay returns a transcript with the answers of a new server.
func replay(t *testing.T, text string) string {
	s := servertest.New(t, func(b *server.Builder) {
		b.Limits.Body = 1 << 10
		b.Authenticators = []auth.Authenticator{auth.AuthenticatorFunc(authenticateByName)}
		b.Authorizer = auth.AuthorizerFunc(allowAllButGuests)
	})
	c := &transcript{t: t, server: s}
	lines := strings.SplitAfter(text, "\n")
	for len(lines) > 0 {
		line := lines[0]
		if strings.HasPrefix(line, "> ") {
			lines = c.exchange(lines)
			continue
		}
		c.out.WriteString(line)
		if d, ok := strings.CutPrefix(line, "~ "); ok {
			pause, err := time.ParseDuration(strings.TrimSpace(d))
			require.NoError(t, err)
			time.Sleep(pause)
		}
		lines = lines[1:]
	}
	return c.out.String()
}

// authenticateByName takes the token for the caller's name; that of nobody is bad.
func authenticateByName(r *http.Request) (*auth.User, error) {
	token, ok := auth.BearerToken(r)
	switch {
	case !ok:
		return &auth.User{Name: "admin"}, nil
	case token == "nobody":
		return nil, auth.ErrBadToken
	}
	return &auth.User{Name: token}, nil
}

func allowAllButGuests(_ context.Context, a auth.Attributes) (auth.Decision, string, error) {
	if a.User.Name == "guest" {
		return auth.NoOpinion, "guests may do nothing", nil
	}
	return auth.Allow, "", nil
}

// transcript is one that is replayed.
type transcript struct {
	t      *testing.T
	server *servertest.Server
	out    strings.Builder
	words  []string // each value that varies before the word that stands for it
}

// exchange sends the request that lines begin with, writes it and its answer, and
// returns the lines after the answer that was expected.
func (c *transcript) exchange(lines []string) []string {
	var head, body []string
	for len(lines) > 0 && strings.HasPrefix(lines[0], "> ") {
		head, lines = append(head, strings.TrimSpace(lines[0][2:])), lines[1:]
	}
	for len(lines) > 0 && !strings.HasPrefix(lines[0], "< ") && lines[0] != "\n" {
		body, lines = append(body, lines[0]), lines[1:]
	}
	for len(lines) > 0 && strings.TrimSpace(lines[0]) != "" { // an answer has no empty line
		lines = lines[1:]
	}
	for _, h := range head {
		c.out.WriteString("> " + h + "\n")
	}
	c.out.WriteString(strings.Join(body, ""))
	c.send(head, strings.TrimSuffix(strings.Join(body, ""), "\n"))
	return lines
}

func (c *transcript) send(head []string, body string) {
	back := make([]string, len(c.words))
	for i := range c.words { // longer words first, RV10 before RV1
		back[i] = c.words[len(c.words)-1-i]
	}
	real := strings.NewReplacer(back...)
	method, path, _ := strings.Cut(head[0], " ")
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.server.Host()+real.Replace(path), strings.NewReader(real.Replace(body)))
	require.NoError(c.t, err)
	r.Header.Set("User-Agent", "transcript/1")
	for _, h := range head[1:] {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	res, err := c.server.Client().Do(r)
	require.NoError(c.t, err)
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	require.NoError(c.t, err)
	c.server.Settle()
	fmt.Fprintf(&c.out, "< %d %s\n", res.StatusCode, res.Header.Get("Content-Type"))
	for _, name := range []string{"Warning", "Retry-After", "Allow", "Location", "Content-Encoding"} {
		for _, value := range res.Header.Values(name) {
			fmt.Fprintf(&c.out, "< %s: %s\n", name, c.fixed(value))
		}
	}
	if len(answer) > 0 {
		c.out.WriteString(strings.TrimSuffix(c.fixed(readable(answer)), "\n") + "\n")
	}
}

// readable is an answer as text: a JSON document indented, watch events as they
// are, and nothing of what is not text.
func readable(answer []byte) string {
	if bytes.ContainsRune(answer, 0) {
		return "(binary)"
	}
	var out bytes.Buffer
	if bytes.HasPrefix(answer, []byte(`{"type":`)) || json.Indent(&out, answer, "", "  ") != nil {
		return strings.ReplaceAll(string(answer), "\n\n", "\n")
	}
	return out.String()
}

// varying finds what differs from run to run, its second group, and what comes before it.
var varying = []struct {
	word string
	form *regexp.Regexp
}{
	{"TOKEN", regexp.MustCompile(`("continue": ?")([^"]+)`)},
	{"UID", regexp.MustCompile(`()([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})`)},
	{"RV", regexp.MustCompile(`(resourceVersion"?: ?"|, current: |resource version: )(\d+)`)},
	{"RV", regexp.MustCompile(`(resource version: RV\d+ \()(\d+)`)},
	{"TIME", regexp.MustCompile(`()(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)`)},
	{"XXXXX", regexp.MustCompile(`(made-)([a-z0-9]{5})\b`)},
}

// fixed replaces what differs from run to run.
func (c *transcript) fixed(text string) string {
	for _, v := range varying {
		text = v.form.ReplaceAllStringFunc(text, func(m string) string {
			parts := v.form.FindStringSubmatch(m)
			if parts[2] == "0" && v.word == "RV" {
				return m
			}
			return parts[1] + c.word(v.word, parts[2])
		})
	}
	return text
}

// word returns the word that stands for a value.
func (c *transcript) word(kind, value string) string {
	if kind == "TIME" || kind == "XXXXX" {
		return kind
	}
	n := 1
	for i := 0; i < len(c.words); i += 2 {
		if strings.HasPrefix(c.words[i+1], kind) {
			if n++; c.words[i] == value {
				return c.words[i+1]
			}
		}
	}
	c.words = append(c.words, value, fmt.Sprintf("%s%d", kind, n))
	return c.words[len(c.words)-1]
}
