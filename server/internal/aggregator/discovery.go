package aggregator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/wellknown"
)

// Bounds of what another server may tell of itself.
const (
	maxDiscovery = 2 << 20 // bytes
	maxValues    = 100_000 // of the JSON text
	maxResources = 2000    // with sub-resources
	maxWord      = 253     // bytes of a name
	maxDepth     = 100
)

// Resources are those of a version, as aggregated discovery describes them. They never
// change.
type Resources struct {
	List []any
	has  map[string]bool
}

// Has reports whether there is a resource of a name, or a sub-resource ("pods/log").
func (r *Resources) Has(name string) bool { return r != nil && r.has[name] }

func discoveryPath(v *Version) string { return "/apis/" + v.Group + "/" + v.Version }

// answer is a document of another server.
type answer struct {
	text []byte // nil: what was read before is still right
	tag  string
}

// silence is why there was no answer at all.
type silence struct{ error }

func (s silence) Unwrap() error { return s.error }

// badStatus is an answer that is no document.
type badStatus int

func (code badStatus) Error() string { return fmt.Sprintf("bad status: %d", int(code)) }

// get asks another server for a document, which has a JSON form, as this server itself.
func (a *Aggregator) get(ctx context.Context, v *Version, path, tag string, most int64) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, v.URL(path, "").String(), nil)
	if err != nil {
		return answer{}, err
	}
	if a.head(r); tag != "" {
		r.Header.Set("If-None-Match", tag)
	}
	res, err := v.way.RoundTrip(r)
	if err != nil {
		return answer{}, silence{err}
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode == http.StatusNotModified && tag != "":
		return answer{tag: tag}, nil
	case res.StatusCode < 200 || res.StatusCode > 299:
		return answer{}, badStatus(res.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("a document of more than %d bytes", most)
	}
	if err != nil {
		return answer{}, err
	}
	if tag = res.Header.Get("ETag"); len(tag) > maxWord {
		tag = ""
	}
	return answer{text, tag}, nil
}

// head makes the headers of a request that is this server's own.
func (a *Aggregator) head(r *http.Request) {
	r.Header = http.Header{"Accept": {"application/json"}, "User-Agent": {a.o.Names.Wire(wellknown.ServerManager)}}
	a.Identify(r.Header, &auth.User{Name: a.o.Names.Wire(wellknown.RoleAggregator), Groups: []string{auth.Masters}})
}

// discover reads the list of resources of a version.
func (a *Aggregator) discover(ctx context.Context, v *Version) (*Resources, error) {
	doc, err := a.get(ctx, v, discoveryPath(v), "", maxDiscovery)
	if err != nil {
		return nil, err
	}
	if codec.CountValues(doc.text) > maxValues {
		return nil, fmt.Errorf("a discovery document of more than %d values", maxValues)
	}
	tree, _, err := codec.DecodeJSON(doc.text, codec.Limits{Depth: maxDepth})
	if err != nil {
		return nil, fmt.Errorf("the answer is no discovery document: %w", err)
	}
	list := meta.NewObject(tree)
	if list.Kind() != "APIResourceList" || list.String("groupVersion") != v.GroupVersion.String() {
		return nil, fmt.Errorf("the answer is no discovery document of %s", v.GroupVersion)
	}
	return resources(list.Objects("resources"), v.GroupVersion)
}

// resources makes of a list of resources and sub-resources what aggregated discovery says.
func resources(list []*meta.Object, gv meta.GroupVersion) (*Resources, error) {
	if len(list) > maxResources {
		return nil, fmt.Errorf("a discovery document of more than %d resources", maxResources)
	}
	var order []string
	docs := map[string]map[string]any{}
	for _, o := range list {
		if err := checkWords(o); err != nil {
			return nil, err
		}
		name, sub, isSub := strings.Cut(o.String("name"), "/")
		if docs[name] == nil {
			order = append(order, name)
			docs[name] = map[string]any{"resource": name, "scope": scope(o), "singularResource": "", "verbs": []any{}}
		}
		verbs := meta.StringList(o.Strings("verbs"))
		if isSub {
			subs, _ := docs[name]["subresources"].([]any)
			docs[name]["subresources"] = append(subs, map[string]any{"subresource": sub, "verbs": verbs, "responseKind": kind(o, gv)})
			continue
		}
		doc := docs[name]
		doc["scope"], doc["singularResource"], doc["verbs"], doc["responseKind"] = scope(o), o.String("singularName"), verbs, kind(o, gv)
		for _, field := range []string{"shortNames", "categories"} {
			if words := o.Strings(field); len(words) > 0 {
				doc[field] = meta.StringList(words)
			}
		}
	}
	out := &Resources{List: make([]any, len(order)), has: map[string]bool{}}
	for _, o := range list {
		out.has[strings.Clone(o.String("name"))] = true
	}
	for i, name := range order {
		out.List[i], out.has[strings.Clone(name)] = codec.Detach(docs[name]), true
	}
	return out, nil
}

// checkWords refuses what no resource is called. With a control character in one the page of
// metrics could not be read.
func checkWords(o *meta.Object) error {
	words := slices.Concat([]string{o.String("name"), o.String("singularName"), o.String("kind"), o.String("group"), o.String("version")},
		o.Strings("verbs"), o.Strings("shortNames"), o.Strings("categories"))
	for _, word := range words {
		if len(word) > maxWord {
			return errors.New("a word in the discovery document is too long")
		}
		if strings.ContainsFunc(word, unicode.IsControl) {
			return errors.New("a word in the discovery document has a control character")
		}
	}
	if words[0] == "" || words[0][0] == '/' {
		return errors.New("a resource in the discovery document has no name")
	}
	return nil
}

func scope(o *meta.Object) string {
	if o.Bool("namespaced") {
		return "Namespaced"
	}
	return "Cluster"
}

// kind is that of a resource's objects; without a version of its own it is of the list's.
func kind(o *meta.Object, gv meta.GroupVersion) map[string]any {
	if o.String("version") != "" {
		gv = meta.GroupVersion{Group: o.String("group"), Version: o.String("version")}
	}
	return map[string]any{"group": gv.Group, "version": gv.Version, "kind": o.String("kind")}
}
