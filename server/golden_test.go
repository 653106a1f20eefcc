package server_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/server/servertest"
)

// What a reference server answered, request by request, held against ours. The
// files lie beside the repository; golden.py there documents their format.

type scenario struct {
	Name  string
	Steps []step
}

type step struct {
	Do      string
	As      *string
	Type    string
	Accept  string
	Headers map[string]string
	Body    any
	Save    map[string]string
	Until   map[string]any
	Watch   int
	Quiet   bool
	Full    bool `json:"fulltype"`
	Want    map[string]any
}

// goldenDir finds the transcripts, or skips the test.
func goldenDir(t *testing.T) string {
	dir, err := filepath.Abs("../../shared/golden")
	require.NoError(t, err)
	if _, err := os.Stat(dir); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("the transcripts are missing: %v", err)
		}
		t.Skipf("the transcripts are not on this machine: %v", err)
	}
	return dir
}

// result counts the steps that agree.
type tally struct{ steps, codes, whole int }

func TestGoldenTranscripts(t *testing.T) {
	dir := goldenDir(t)
	for _, file := range []struct {
		name         string
		codes, whole float64 // the part of the steps that must agree
		managed      bool    // managedFields count
	}{
		{"rest.json", 0.97, 0.90, false},
		{"access.json", 0.97, 0.93, true},
		{"write.json", 0.97, 0.90, true},
	} {
		t.Run(file.name, func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(filepath.Join(dir, file.name))
			require.NoError(t, err)
			var scenarios []scenario
			require.NoError(t, json.Unmarshal(data, &scenarios))
			p := newPlayer(t, dir, file.managed)
			var all tally
			for _, sc := range scenarios {
				p.play(t, sc, &all)
			}
			t.Logf("%s: %d steps, codes agree in %d, whole answers in %d", file.name, all.steps, all.codes, all.whole)
			require.GreaterOrEqual(t, float64(all.codes), file.codes*float64(all.steps), "answers with the right code")
			require.GreaterOrEqual(t, float64(all.whole), file.whole*float64(all.steps), "answers that agree as a whole")
		})
	}
}

// player sends the steps of scenarios to a server and compares the answers.
type player struct {
	client  *http.Client
	host    string
	tokens  map[string]string
	managed bool
	id, ns  string
	saved   map[string]string
}

func newPlayer(t *testing.T, dir string, managed bool) *player {
	s := servertest.New(t, goldenServer(t, filepath.Join(dir, "users.csv")))
	p := &player{client: s.Client(), host: s.Host(), tokens: map[string]string{}, managed: managed}
	f, err := os.Open(filepath.Join(dir, "users.csv"))
	require.NoError(t, err)
	defer f.Close()
	r := csv.NewReader(f)
	r.FieldsPerRecord = -1
	rows, err := r.ReadAll()
	require.NoError(t, err)
	for _, row := range rows {
		p.tokens[row[1]] = row[0]
	}
	return p
}

var placeholder = regexp.MustCompile(`\$\{(\w+)\}`)

func (p *player) fill(s string) string {
	s = strings.ReplaceAll(strings.ReplaceAll(s, "$ns", p.ns), "$id", p.id)
	return placeholder.ReplaceAllStringFunc(s, func(m string) string {
		if v, ok := p.saved[m[2:len(m)-1]]; ok {
			return v
		}
		return m
	})
}

func (p *player) play(t *testing.T, sc scenario, all *tally) {
	letters := make([]byte, 8)
	for i := range letters {
		letters[i] = byte('a' + rand.IntN(26))
	}
	p.id, p.saved = string(letters), map[string]string{}
	p.ns = "golden-" + p.id
	p.call(t, step{Do: "POST /api/v1/namespaces", Body: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": p.ns}}})
	first := ""
	for i, st := range sc.Steps {
		got := p.await(t, st)
		for name, path := range st.Save {
			p.saved[name] = fmt.Sprint(dig(got["body"], path))
		}
		if st.Quiet {
			continue
		}
		all.steps++
		want := st.Want
		if got["code"] == want["code"] {
			all.codes++
		}
		have := map[string]any{"code": got["code"], "type": got["type"], "body": p.normal(got["body"], "")}
		if w, ok := got["warning"]; ok {
			have["warning"] = w
		}
		diff := p.differ(map[string]any{"code": want["code"], "type": want["type"], "body": want["body"], "warning": want["warning"]}, have, "")
		if diff == "" {
			all.whole++
		} else if first == "" {
			first = fmt.Sprintf("%s: step %d %s: %s", sc.Name, i, st.Do, diff)
		}
	}
	if first != "" {
		t.Log(first)
	}
	p.call(t, step{Do: "DELETE /api/v1/namespaces/" + p.ns})
}

// await repeats a step until its answer is as asked for, five seconds at most.
func (p *player) await(t *testing.T, st step) map[string]any {
	end := time.Now().Add(5 * time.Second)
	for {
		got := p.call(t, st)
		ok := true
		for path, v := range st.Until {
			ok = ok && reflect.DeepEqual(dig(map[string]any{"code": got["code"], "body": got["body"]}, path), v)
		}
		if ok || time.Now().After(end) {
			return got
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (p *player) call(t *testing.T, st step) map[string]any {
	method, path, _ := strings.Cut(p.fill(st.Do), " ")
	var body io.Reader
	switch b := st.Body.(type) {
	case nil:
	case string:
		body = strings.NewReader(p.fill(b))
	default:
		text, err := json.Marshal(b)
		require.NoError(t, err)
		body = strings.NewReader(p.fill(string(text)))
	}
	limit := 20 * time.Second
	if st.Watch > 0 {
		limit = 4 * time.Second
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, p.host+path, body)
	require.NoError(t, err)
	r.Header.Set("Accept", "application/json")
	if st.Accept != "" {
		r.Header.Set("Accept", st.Accept)
	}
	r.Header.Set("User-Agent", "")
	sent := http.Header{} // two spellings of one header are two values of it
	for _, k := range slices.Sorted(maps.Keys(st.Headers)) {
		sent.Add(k, p.fill(st.Headers[k]))
	}
	maps.Copy(r.Header, sent)
	who := "admin"
	if st.As != nil {
		who = *st.As
	}
	if who != "" {
		token, known := p.tokens[who]
		switch {
		case known:
		case strings.HasPrefix(who, "${"):
			token = p.fill(who)
		default:
			token = who + "-token"
		}
		if _, own := st.Headers["Authorization"]; !own {
			r.Header.Set("Authorization", "Bearer "+token)
		}
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
		if st.Type != "" {
			r.Header.Set("Content-Type", st.Type)
		}
	}
	res, err := p.client.Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	kind := res.Header.Get("Content-Type")
	if !st.Full {
		kind, _, _ = strings.Cut(kind, ";")
	}
	got := map[string]any{"code": float64(res.StatusCode), "type": kind}
	if w := res.Header.Values("Warning"); len(w) > 0 {
		var codes []any
		for _, text := range w {
			code, _, _ := strings.Cut(text, " ")
			codes = append(codes, code)
		}
		got["warning"] = codes
	}
	if st.Watch > 0 && res.StatusCode == 200 {
		got["body"] = events(res.Body, st.Watch)
		return got
	}
	raw, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	got["body"] = plainBody(raw, kind)
	return got
}

func events(body io.Reader, n int) any {
	list := []any{}
	d := json.NewDecoder(body)
	for len(list) < n {
		var ev any
		if err := d.Decode(&ev); err != nil {
			return list
		}
		list = append(list, ev)
	}
	return list
}

var (
	timeForm  = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$`)
	uidForm   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	ageForm   = regexp.MustCompile(`^(\d+y)?(\d+d)?(\d+h)?(\d+m)?(\d+s)?$`)
	yamlTime  = regexp.MustCompile(`"?\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"?`)
	yamlRV    = regexp.MustCompile(`(?m)^(\s*(?:- )?resourceVersion: )"\d+"$`)
	yamlProse = regexp.MustCompile(`(?m)^( *)message: .*$`)
	volume    = regexp.MustCompile(`^kube-api-access-[a-z0-9]{5}$`)
)

func plainBody(raw []byte, kind string) any {
	var v any
	if json.Unmarshal(raw, &v) == nil {
		return v
	}
	if strings.Contains(kind, "protobuf") {
		return "PROTOBUF"
	}
	if bytes.ContainsFunc(raw, func(r rune) bool { return r > 126 }) {
		return "base64:" + base64.StdEncoding.EncodeToString(raw)
	}
	text := string(raw)
	if strings.Contains(kind, "yaml") {
		text = yamlTime.ReplaceAllString(text, "TIME")
		text = yamlRV.ReplaceAllString(text, "${1}RV")
		text = yamlProse.ReplaceAllString(text, "${1}message: TEXT")
	}
	return text
}

// normal replaces what differs from run to run by fixed words.
func (p *player) normal(v any, key string) any {
	switch v := v.(type) {
	case map[string]any:
		return p.normalObject(v)
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = p.normal(x, key)
		}
		return out
	case string:
		switch {
		case timeForm.MatchString(v):
			return "TIME"
		case len(v) > 60 && strings.Count(v, ".") == 2 && strings.HasPrefix(v, "ey"):
			return "JWT"
		case volume.MatchString(v):
			return "kube-api-access-XXXXX"
		}
		return p.words(v)
	}
	return v
}

func (p *player) words(s string) string {
	return uidForm.ReplaceAllString(strings.ReplaceAll(strings.ReplaceAll(s, p.ns, "NS"), p.id, "ID"), "UID")
}

func (p *player) normalObject(v map[string]any) any {
	out := map[string]any{}
	generate, _ := v["generateName"].(string)
	for k, x := range v {
		text, isText := x.(string)
		name := p.words(k)
		switch {
		case k == "resourceVersion" && isText:
			out[name] = text
			if text != "" && text != "0" {
				out[name] = "RV"
			}
		case k == "continue" && text != "":
			out[name] = "TOKEN"
		case k == "uid" && isText:
			out[name] = "UID"
		case (k == "message" || k == "description") && text != "":
			out[name] = "TEXT"
		case k == "name" && generate != "" && strings.HasPrefix(text, generate):
			out[name] = strings.ReplaceAll(generate, p.id, "ID") + "XXXXX"
		default:
			out[name] = p.normal(x, k)
		}
	}
	return out
}

// differ returns the first difference, "" if there is none.
func (p *player) differ(want, got any, path string) string {
	if !p.managed && strings.HasSuffix(path, ".managedFields") {
		return ""
	}
	last := path[strings.LastIndexByte(path, '.')+1:]
	w, wText := want.(string)
	g, gText := got.(string)
	if wText && gText && slices.Contains([]string{"reason", "error", "evaluationError"}, last) && strings.Contains(w, " ") && g != "" {
		return ""
	}
	if wText && gText && strings.Contains(path, ".cells[") && ageForm.MatchString(w) && ageForm.MatchString(g) {
		return ""
	}
	switch want := want.(type) {
	case map[string]any:
		if got, ok := got.(map[string]any); ok {
			return p.differObjects(want, got, path)
		}
	case []any:
		if got, ok := got.([]any); ok {
			return p.differLists(want, got, path)
		}
	}
	if !reflect.DeepEqual(want, got) {
		return fmt.Sprintf("%s: %.100v, want %.100v", path, got, want)
	}
	return ""
}

func (p *player) differObjects(want, got map[string]any, path string) string {
	for _, k := range slices.Sorted(keysOf(want, got)) {
		if !p.managed && k == "managedFields" {
			continue
		}
		_, has := got[k]
		_, wants := want[k]
		switch {
		case !has && want[k] != nil:
			return fmt.Sprintf("%s.%s: missing, want %.100v", path, k, want[k])
		case !wants && !((k == "kind" || k == "apiVersion") && strings.Contains(path, "[")):
			return fmt.Sprintf("%s.%s: unexpected %.100v", path, k, got[k])
		case has && wants:
			if d := p.differ(want[k], got[k], path+"."+k); d != "" {
				return d
			}
		}
	}
	return ""
}

func keysOf(a, b map[string]any) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range a {
			if !yield(k) {
				return
			}
		}
		for k := range b {
			if _, twice := a[k]; !twice && !yield(k) {
				return
			}
		}
	}
}

func (p *player) differLists(want, got []any, path string) string {
	if strings.HasSuffix(path, ".managedFields") {
		want, got = sortedEntries(want), sortedEntries(got)
	}
	if len(want) != len(got) {
		return fmt.Sprintf("%s: %d entries, want %d", path, len(got), len(want))
	}
	for i := range want {
		if d := p.differ(want[i], got[i], path+"["+strconv.Itoa(i)+"]"); d != "" {
			return d
		}
	}
	return ""
}

// sortedEntries orders managedFields, whose order depends on whole seconds.
func sortedEntries(list []any) []any {
	key := func(v any) string {
		m, _ := v.(map[string]any)
		text, _ := json.Marshal([]any{m["operation"], m["manager"], m["subresource"], m["apiVersion"], m["fieldsV1"]})
		return string(text)
	}
	return slices.SortedFunc(slices.Values(list), func(a, b any) int { return strings.Compare(key(a), key(b)) })
}

// dig returns the value at a path such as items.0.metadata.name.
func dig(v any, path string) any {
	for _, part := range strings.Split(path, ".") {
		switch x := v.(type) {
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i >= len(x) {
				return nil
			}
			v = x[i]
		case map[string]any:
			v = x[strings.ReplaceAll(part, "~", ".")]
		default:
			return nil
		}
	}
	return v
}
