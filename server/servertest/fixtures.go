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

// Load creates or replaces the objects in the YAML and JSON files of a directory and its subdirectories. It
// loads namespaces first, then definitions, then the other objects in the order of the files, each after its
// owners. An object without a namespace is put into default.
//
// The files may be the output of kubectl get: Load keeps the status, drops fields that only the server sets,
// deletes objects that have a deletionTimestamp, and adapts owner references, which it resolves by the uid in
// the files, else by name.
//
// An error, such as a field that the kind does not have, ends the test, and so does an owner that does not
// exist, because the garbage collector would delete the object.
func (s *Server) Load(files fs.FS) {
	s.t.Helper()
	list, err := manifests.Read(files)
	if err != nil {
		s.t.Fatalf("reading fixtures: %v", err)
	}
	if list = items(list); len(list) == 0 {
		s.t.Fatal("the files contain no objects")
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
	if err := l.checkOwned(ctx); err != nil {
		s.t.Fatalf("loading %v", err)
	}
}

// items replaces lists by their items.
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

// rank returns the order of kinds: namespaces, definitions, others.
func rank(o *meta.Object) int {
	switch o.Kind() {
	case "Namespace":
		return 0
	case "CustomResourceDefinition":
		return 1
	}
	return 2
}

// inOrder returns the objects in an order in which each object comes after its namespace and its owners, if these are in
// the list.
func inOrder(list []*meta.Object) (ordered []*meta.Object) {
	uids, namespaces := map[string]bool{}, map[string]bool{} // not yet in ordered
	note := func(o *meta.Object, pending bool) {
		uids[o.UID()] = pending && o.UID() != ""
		if rank(o) == 0 {
			namespaces[o.Name()] = pending
		}
	}
	for _, o := range list {
		note(o, true)
	}
	for len(list) > 0 {
		var later []*meta.Object
		for _, o := range list {
			if namespaces[o.Namespace()] || slices.ContainsFunc(o.OwnerReferences(), func(r meta.Owner) bool { return uids[r.UID] }) {
				later = append(later, o)
				continue
			}
			note(o, false)
			ordered = append(ordered, o)
		}
		if len(later) == len(list) {
			return append(ordered, later...) // a cycle of owners
		}
		list = later
	}
	return ordered
}

// loader writes fixtures as a client with all rights.
type loader struct {
	s      *Server
	client *http.Client
	uids   map[string]string // from the uid in the files to the present uid
	owned  []fixture         // objects with owners
}

// fixture is a loaded object and its path.
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
		if code != http.StatusNotFound && code != http.StatusMethodNotAllowed && err != nil { // without a subresource, status was written with the object
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

// replace updates an object to the result of change, and retries conflicts, for example with controllers, up
// to 20 times. below is the path of a subresource, or empty.
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

// checkOwned returns an error for an object that was deleted by the garbage collector because its owner does
// not exist.
func (l *loader) checkOwned(ctx context.Context) error {
	for _, f := range l.owned {
		if _, code, err := l.send(ctx, http.MethodGet, f.path, nil); code == http.StatusNotFound {
			owner := f.of.OwnerReferences()[0]
			return fmt.Errorf("%s %s: deleted by the garbage collector: its owner %s %s is neither in the files nor on the server", f.of.Kind(), f.of.Name(), owner.Kind, owner.Name)
		} else if err != nil {
			return fmt.Errorf("%s %s: %w", f.of.Kind(), f.of.Name(), err)
		}
	}
	return nil
}

// path returns the path of the collection of a kind.
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
	return "", fmt.Errorf("kind %s in %s is not served", kind, apiVersion)
}

// clean returns the object without the fields that the server sets, and with present owner uids.
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

// owner returns the present uid of an owner, or the uid in the reference if the owner does not exist.
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
