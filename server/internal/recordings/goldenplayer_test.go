package recordings_test

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
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/registry"
)

type scenario struct {
	Name  string
	Steps []step
}

type step struct {
	Rule    string `json:",omitempty"` // the validation rule that the request violates
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

// player sends the steps of scenarios to a server and compares the answers.
type player struct {
	client  *http.Client
	base    string // URL of the server
	tokens  map[string]string
	managed bool
	id, ns  string
	saved   map[string]string

	// generated collects in accepted a 4xx where the reference answers 500, and causes beside those of the reference.
	// It accepts any allocated address.
	generated bool
	accepted  []difference // the answers that generated accepted
	beside    int          // the causes of one answer beside those of the reference
}

func newPlayer(t *testing.T, users string, loops bool, kinds ...*registry.Kind) *player {
	s := goldenServer(t, users, loops, kinds...)
	p := &player{client: &http.Client{Transport: s.Transport()}, base: "http://in-process", tokens: map[string]string{}}
	f, err := os.Open(users)
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

// play sends the steps of a scenario and returns which answers differ, and in what.
func (p *player) play(t *testing.T, sc scenario) (differences []difference) {
	p.begin(t)
	for i, st := range sc.Steps {
		got := p.await(t, st)
		for name, path := range st.Save {
			p.saved[name] = fmt.Sprint(dig(got["body"], path))
		}
		if st.Quiet {
			continue
		}
		if p.generated && refusal(got["code"]) && st.Want["code"] == 500.0 {
			p.accepted = append(p.accepted, difference{fmt.Sprintf("%s %d %v for 500", sc.Name, i, got["code"]), st.Do})
			continue
		}
		p.beside = 0
		got["body"] = p.normal(got["body"], "")
		d := difference{full: strings.TrimSpace(st.Do + " " + st.Rule)}
		for _, one := range p.differ(st.Want, got, "") {
			d.short += " " + one.short
			d.full += "\n    " + one.full
		}
		if p.beside > 0 {
			p.accepted = append(p.accepted, difference{fmt.Sprintf("%s %d %d causes more", sc.Name, i, p.beside), st.Do})
		}
		if d.short != "" {
			d.short = fmt.Sprintf("%s %d%s", sc.Name, i, d.short)
			differences = append(differences, d)
		}
	}
	p.end(t)
	return differences
}

func refusal(code any) bool {
	n, _ := code.(float64)
	return n >= 400 && n < 500
}

// begin chooses a random identifier for a scenario and creates its namespace.
func (p *player) begin(t *testing.T) {
	letters := make([]byte, 8)
	for i := range letters {
		letters[i] = byte('a' + rand.IntN(26))
	}
	p.id, p.saved = string(letters), map[string]string{}
	p.ns = "golden-" + p.id
	p.call(t, step{Do: "POST /api/v1/namespaces", Body: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": p.ns}}})
}

func (p *player) end(t *testing.T) {
	p.call(t, step{Do: "DELETE /api/v1/namespaces/" + p.ns})
}

// await repeats a step until its answer is as asked for, a minute at most.
func (p *player) await(t *testing.T, st step) map[string]any {
	end := time.Now().Add(time.Minute)
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
	r, err := http.NewRequestWithContext(ctx, method, p.base+path, body)
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
	timeForm    = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$`)
	uidForm     = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	addressForm = regexp.MustCompile(`^10\.0\.0\.\d+$`) // of a Service, allocated at random
	ageForm     = regexp.MustCompile(`^(\d+y)?(\d+d)?(\d+h)?(\d+m)?(\d+s)?$`)
	yamlTime    = regexp.MustCompile(`"?\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"?`)
	yamlRV      = regexp.MustCompile(`(?m)^(\s*(?:- )?resourceVersion: )"\d+"$`)
	yamlProse   = regexp.MustCompile(`(?m)^( *)message: .*$`)
	volume      = regexp.MustCompile(`^kube-api-access-[a-z0-9]{5}$`)
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
		case p.generated && addressForm.MatchString(v):
			return "ADDRESS"
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

// difference is one place where an answer is not as wanted. Its short form tells
// a missing field by a minus, one too many by a plus, another by what it is.
type difference struct{ short, full string }

// differ returns where an answer is not as wanted.
func (p *player) differ(want, got any, path string) []difference {
	last := path[strings.LastIndexByte(path, '.')+1:]
	w, wText := want.(string)
	g, gText := got.(string)
	if wText && gText && slices.Contains([]string{"reason", "error", "evaluationError"}, last) && strings.Contains(w, " ") && g != "" {
		return nil
	}
	if wText && gText && strings.Contains(path, ".cells[") && ageForm.MatchString(w) && ageForm.MatchString(g) {
		return nil
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
	if reflect.DeepEqual(want, got) {
		return nil
	}
	return []difference{{path + "=" + cut(got, 40), fmt.Sprintf("%s: %s, want %s", path, cut(got, 200), cut(want, 200))}}
}

// cut is the JSON of a value, n bytes of it.
func cut(v any, n int) string {
	text, _ := json.Marshal(v)
	if len(text) > n {
		return strings.ToValidUTF8(string(text[:n]), "") + "…"
	}
	return string(text)
}

func (p *player) differObjects(want, got map[string]any, path string) (all []difference) {
	keys := maps.Clone(want)
	maps.Copy(keys, got)
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		at := strings.TrimPrefix(path+"."+k, ".")
		w, wants := want[k]
		g, has := got[k]
		switch {
		case !p.managed && k == "managedFields":
		case !has && w != nil:
			all = append(all, difference{"-" + at, fmt.Sprintf("%s: missing, want %s", at, cut(w, 200))})
		case !wants && !((k == "kind" || k == "apiVersion") && strings.Contains(path, "[")):
			all = append(all, difference{"+" + at, fmt.Sprintf("%s: unexpected %s", at, cut(g, 200))})
		case has && wants:
			all = append(all, p.differ(w, g, at)...)
		}
	}
	return all
}

func (p *player) differLists(want, got []any, path string) (all []difference) {
	switch {
	case strings.HasSuffix(path, ".managedFields"):
		want, got = sortedEntries(want), sortedEntries(got)
	case strings.HasSuffix(path, ".causes"):
		want, got = distinctCauses(want), distinctCauses(got)
		if p.generated {
			all := len(got)
			got = slices.DeleteFunc(got, func(cause any) bool { return !slices.Contains(want, cause) })
			p.beside += all - len(got)
		}
	}
	if len(want) != len(got) {
		text := fmt.Sprintf("%s: %d entries, want %d", path, len(got), len(want))
		return []difference{{fmt.Sprintf("%s=%d", path, len(got)), text}}
	}
	for i := range want {
		all = append(all, p.differ(want[i], got[i], path+"["+strconv.Itoa(i)+"]")...)
	}
	return all
}

// distinctCauses returns the different causes, sorted. Their order and how often a cause is repeated follow from the
// order of the reference's checks, and are not compared.
func distinctCauses(list []any) []any {
	texts := make([]string, len(list))
	for i, cause := range list {
		m, _ := cause.(map[string]any)
		text, _ := json.Marshal([]any{m["field"], m["reason"]})
		texts[i] = string(text)
	}
	slices.Sort(texts)
	distinct := []any{}
	for _, text := range slices.Compact(texts) {
		distinct = append(distinct, text)
	}
	return distinct
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
