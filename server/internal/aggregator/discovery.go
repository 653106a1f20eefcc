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

// Limits of the discovery document of an extension server.
const (
	maxDiscovery = 2 << 20 // bytes
	maxValues    = 100_000 // in the JSON text
	maxResources = 2000    // including subresources
	maxName      = 253     // bytes of a name or verb
	maxDepth     = 100
)

// Resources are the resources of a group version, in the representation of aggregated discovery. They are immutable.
type Resources struct {
	List []any
	has  map[string]bool
}

// Has reports whether there is a resource or subresource ("pods/log") with a name.
func (r *Resources) Has(name string) bool { return r != nil && r.has[name] }

func discoveryPath(v *Version) string { return "/apis/" + v.Group + "/" + v.Version }

// document is a document of an extension server.
type document struct {
	text []byte // nil: unchanged since the read with that ETag
	tag  string // ETag
}

// noResponse is the error of a request without a response.
type noResponse struct{ error }

func (s noResponse) Unwrap() error { return s.error }

// badStatus is the status code of a response without a document.
type badStatus int

func (code badStatus) Error() string { return fmt.Sprintf("bad status: %d", int(code)) }

// get requests a JSON document from an extension server, as the user of this server itself. If tag is not empty and
// is still the ETag of the document, the text of the result is nil. limit is the largest size in bytes.
func (a *Aggregator) get(ctx context.Context, v *Version, path, tag string, limit int64) (document, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, v.URL(path, "").String(), nil)
	if err != nil {
		return document{}, err
	}
	if a.setHeaders(r); tag != "" {
		r.Header.Set("If-None-Match", tag)
	}
	res, err := v.transport.RoundTrip(r)
	if err != nil {
		return document{}, noResponse{err}
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode == http.StatusNotModified && tag != "":
		return document{tag: tag}, nil
	case res.StatusCode < 200 || res.StatusCode > 299:
		return document{}, badStatus(res.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("document of more than %d bytes", limit)
	}
	if err != nil {
		return document{}, err
	}
	if tag = res.Header.Get("ETag"); len(tag) > maxName {
		tag = ""
	}
	return document{text, tag}, nil
}

// setHeaders sets the headers of a request that this server makes itself.
func (a *Aggregator) setHeaders(r *http.Request) {
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
		return nil, fmt.Errorf("discovery document has more than %d values", maxValues)
	}
	tree, _, err := codec.DecodeJSON(doc.text, codec.Limits{Depth: maxDepth})
	if err != nil {
		return nil, fmt.Errorf("response is not a discovery document: %w", err)
	}
	list := meta.NewObject(tree)
	if list.Kind() != "APIResourceList" || list.String("groupVersion") != v.GroupVersion.String() {
		return nil, fmt.Errorf("response is not a discovery document of %s", v.GroupVersion)
	}
	return resources(list.Objects("resources"), v.GroupVersion)
}

// resources converts a list of resources and subresources to the representation of aggregated discovery.
func resources(list []*meta.Object, gv meta.GroupVersion) (*Resources, error) {
	if len(list) > maxResources {
		return nil, fmt.Errorf("discovery document has more than %d resources", maxResources)
	}
	var order []string
	docs := map[string]map[string]any{}
	for _, o := range list {
		if err := checkNames(o); err != nil {
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

// checkNames returns an error for a resource with an invalid name. A control character in a name would make the
// metrics page unreadable.
func checkNames(o *meta.Object) error {
	words := slices.Concat([]string{o.String("name"), o.String("singularName"), o.String("kind"), o.String("group"), o.String("version")},
		o.Strings("verbs"), o.Strings("shortNames"), o.Strings("categories"))
	for _, word := range words {
		if len(word) > maxName {
			return errors.New("a name in the discovery document is too long")
		}
		if strings.ContainsFunc(word, unicode.IsControl) {
			return errors.New("a name in the discovery document has a control character")
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

// kind returns the kind of the objects of a resource. If it has no version, its group and version are those of the
// list.
func kind(o *meta.Object, gv meta.GroupVersion) map[string]any {
	if o.String("version") != "" {
		gv = meta.GroupVersion{Group: o.String("group"), Version: o.String("version")}
	}
	return map[string]any{"group": gv.Group, "version": gv.Version, "kind": o.String("kind")}
}
