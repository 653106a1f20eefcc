package servertest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/inprocess"
	"orch.io/controlplane/internal/manifests"
)

// Load creates the objects in the YAML and JSON files of a directory and those below it,
// or replaces them: namespaces and definitions first, the others in the order of the files,
// owners before what they own. They may be what a cluster was asked for: their
// status is kept, what only a server sets is made anew, owners are found by the uids
// that they had, or else by their names, and what was being deleted is. Objects of namespaces
// that name none are of default. A field that a kind does not have, like every other fault,
// ends the test, and so does an owner that is nowhere: what it owned would be garbage.
func (s *Server) Load(files fs.FS) {
	s.t.Helper()
	list, err := manifests.Read(files)
	if err != nil {
		s.t.Fatalf("reading fixtures: %v", err)
	}
	if list = items(list); len(list) == 0 {
		s.t.Fatal("the files hold no objects")
	}
	slices.SortStableFunc(list, func(a, b *meta.Object) int { return cmp.Compare(rank(a), rank(b)) })
	l := loader{s: s, uids: map[string]string{}, client: &http.Client{
		Transport: transport{next: inprocess.Transport(s.Server), token: s.As("fixtures", auth.Masters).Token()},
	}}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	defined := false
	for _, o := range inOrder(list) {
		if defined && rank(o) != 1 {
			s.Settle()
		}
		defined = rank(o) == 1
		if err := l.load(ctx, o); err != nil {
			s.t.Fatalf("loading %s %s: %v", o.Kind(), meta.Key{Namespace: o.Namespace(), Name: o.Name()}, err)
		}
	}
	s.Settle()
	if err := l.kept(ctx); err != nil {
		s.t.Fatalf("loading %v", err)
	}
}

// items returns the objects with those of lists in their places.
func items(list []*meta.Object) (all []*meta.Object) {
	for _, o := range list {
		if o.Kind() == "List" {
			all = append(all, items(o.Objects("items"))...)
		} else {
			all = append(all, o)
		}
	}
	return all
}

// rank orders what others need before them.
func rank(o *meta.Object) int {
	switch o.Kind() {
	case "Namespace":
		return 0
	case "CustomResourceDefinition":
		return 1
	}
	return 2
}

// inOrder returns the objects with each after its namespace and its owners, as far as they
// are among them.
func inOrder(list []*meta.Object) (ordered []*meta.Object) {
	uids, namespaces := map[string]bool{}, map[string]bool{} // that are still to come
	note := func(o *meta.Object, toCome bool) {
		uids[o.UID()] = toCome && o.UID() != ""
		if rank(o) == 0 {
			namespaces[o.Name()] = toCome
		}
	}
	for _, o := range list {
		note(o, true)
	}
	for len(list) > 0 {
		var later []*meta.Object
		for _, o := range list {
			if namespaces[o.Namespace()] || slices.ContainsFunc(o.OwnerReferences(), func(r meta.OwnerReference) bool { return uids[r.UID] }) {
				later = append(later, o)
				continue
			}
			note(o, false)
			ordered = append(ordered, o)
		}
		if len(later) == len(list) {
			return append(ordered, later...) // they own each other
		}
		list = later
	}
	return ordered
}

// loader writes fixtures as a client does that may do everything.
type loader struct {
	s      *Server
	client *http.Client
	uids   map[string]string // those that objects had, and those that they have now
	owned  []fixture         // that stay only as long as an owner does
}

// fixture is an object that was loaded.
type fixture struct {
	path string
	of   *meta.Object
}

func (l *loader) load(ctx context.Context, o *meta.Object) error {
	path, err := l.path(o.APIVersion(), o.Kind(), o.Namespace())
	if err != nil {
		return err
	}
	tree := l.clean(ctx, o)
	made, code, err := l.send(ctx, http.MethodPost, path+"?fieldValidation=Strict", tree)
	if code == http.StatusConflict && o.Name() != "" {
		made, _, err = l.replace(ctx, path+"/"+url.PathEscape(o.Name()), "", func(*meta.Object) map[string]any { return tree })
	}
	if err != nil {
		return err
	}
	item := path + "/" + url.PathEscape(made.Name())
	if o.UID() != "" {
		l.uids[o.UID()] = made.UID()
	}
	if status, ok := tree["status"]; ok {
		_, code, err = l.replace(ctx, item, "/status", func(now *meta.Object) map[string]any {
			shown := now.Clone().Tree()
			shown["status"] = status
			return shown
		})
		if code != http.StatusNotFound && code != http.StatusMethodNotAllowed && err != nil { // else it is a field like others
			return fmt.Errorf("its status: %w", err)
		}
	}
	if o.Terminating() {
		_, _, err = l.send(ctx, http.MethodDelete, item, nil)
		return err
	}
	if len(o.OwnerReferences()) > 0 {
		l.owned = append(l.owned, fixture{item, o})
	}
	return nil
}

// replace writes what becomes of an object as it is now. Controllers may write it, too, and
// come between; they do not forever.
func (l *loader) replace(ctx context.Context, item, below string, change func(now *meta.Object) map[string]any) (made *meta.Object, code int, err error) {
	for range 20 {
		now, code, err := l.send(ctx, http.MethodGet, item, nil)
		if err != nil {
			return nil, code, err
		}
		next := meta.NewObject(change(now))
		next.Set(now.ResourceVersion(), "metadata", "resourceVersion")
		if made, code, err = l.send(ctx, http.MethodPut, item+below+"?fieldValidation=Strict", next.Tree()); code != http.StatusConflict {
			return made, code, err
		}
	}
	return made, code, err
}

// kept reports which of the objects is not there any more for want of an owner.
func (l *loader) kept(ctx context.Context) error {
	for _, f := range l.owned {
		if _, code, err := l.send(ctx, http.MethodGet, f.path, nil); code == http.StatusNotFound {
			owner := f.of.OwnerReferences()[0]
			return fmt.Errorf("%s %s: it was collected as garbage: its owner %s %s is neither in the files nor on the server", f.of.Kind(), f.of.Name(), owner.Kind, owner.Name)
		} else if err != nil {
			return fmt.Errorf("%s %s: %w", f.of.Kind(), f.of.Name(), err)
		}
	}
	return nil
}

// path is where objects of a kind are created.
func (l *loader) path(apiVersion, kind, namespace string) (string, error) {
	for _, t := range l.s.Objects().Types() {
		for _, v := range t.ServedVersions {
			if t.Kind != kind || v.String() != apiVersion {
				continue
			}
			path := "/apis/" + apiVersion
			if v.Group == "" {
				path = "/api/" + v.Version
			}
			if t.Namespaced {
				path += "/namespaces/" + cmp.Or(namespace, "default")
			}
			return path + "/" + t.Plural, nil
		}
	}
	return "", fmt.Errorf("no kind %s of %s is served", kind, apiVersion)
}

// clean returns an object without what a server sets.
func (l *loader) clean(ctx context.Context, o *meta.Object) map[string]any {
	tree := o.Clone().Tree()
	metadata := map[string]any{}
	for field, value := range o.Metadata() {
		switch field {
		case "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "managedFields", "selfLink":
		default:
			metadata[field] = value
		}
	}
	owners, _ := metadata["ownerReferences"].([]any)
	owners = slices.Clone(owners)
	for i, owner := range owners {
		if reference, ok := owner.(map[string]any); ok {
			reference = maps.Clone(reference)
			reference["uid"] = l.owner(ctx, meta.NewObject(reference), o.Namespace())
			owners[i] = reference
		}
	}
	if owners != nil {
		metadata["ownerReferences"] = owners
	}
	tree["metadata"] = metadata
	return tree
}

// owner is the uid that an owner has now, or what the reference says of one that is nowhere.
func (l *loader) owner(ctx context.Context, reference *meta.Object, namespace string) string {
	uid := reference.String("uid")
	if now := l.uids[uid]; now != "" {
		return now
	}
	if path, err := l.path(reference.APIVersion(), reference.Kind(), namespace); err == nil {
		if now, _, err := l.send(ctx, http.MethodGet, path+"/"+url.PathEscape(reference.String("name")), nil); err == nil {
			return now.UID()
		}
	}
	return uid
}

func (l *loader) send(ctx context.Context, method, path string, tree map[string]any) (*meta.Object, int, error) {
	body, err := json.Marshal(tree)
	if err != nil {
		return nil, 0, err
	}
	r, err := http.NewRequestWithContext(ctx, method, l.s.Host()+path, bytes.NewReader(body))
	if err != nil {
		return nil, 0, err
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := l.client.Do(r)
	if err != nil {
		return nil, 0, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, 0, err
	}
	made := map[string]any{}
	if err := json.Unmarshal(answer, &made); err != nil {
		return nil, res.StatusCode, err
	}
	if res.StatusCode >= http.StatusBadRequest {
		return nil, res.StatusCode, fmt.Errorf("%v", made["message"])
	}
	return meta.NewObject(made), res.StatusCode, nil
}
