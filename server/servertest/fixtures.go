package servertest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
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
// that they had, and what was being deleted is. Objects of namespaces that name none are
// of default. A field that a kind does not have, like every other fault, ends the test.
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
	for i, o := range owned(list) {
		if defined && rank(o) > rank(list[i-1]) {
			s.Settle()
		}
		defined = rank(o) == 1
		if err := l.load(ctx, o); err != nil {
			s.t.Fatalf("loading %s %s: %v", o.Kind(), meta.Key{Namespace: o.Namespace(), Name: o.Name()}, err)
		}
	}
	s.Settle()
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

// owned returns the objects with each after its owners, as far as they are among them.
func owned(list []*meta.Object) (ordered []*meta.Object) {
	left := map[string]bool{}
	for _, o := range list {
		left[o.UID()] = o.UID() != ""
	}
	for len(list) > 0 {
		var later []*meta.Object
		for _, o := range list {
			if slices.ContainsFunc(o.OwnerReferences(), func(r meta.OwnerReference) bool { return left[r.UID] }) {
				later = append(later, o)
				continue
			}
			left[o.UID()] = false
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
}

func (l *loader) load(ctx context.Context, o *meta.Object) error {
	path, err := l.path(o)
	if err != nil {
		return err
	}
	tree, item := l.clean(o), path+"/"+o.Name()
	made, code, err := l.send(ctx, http.MethodPost, path+"?fieldValidation=Strict", tree)
	if code == http.StatusConflict && o.Name() != "" {
		made, _, err = l.send(ctx, http.MethodPut, item+"?fieldValidation=Strict", tree)
	}
	if err != nil {
		return err
	}
	if o.UID() != "" {
		l.uids[o.UID()] = made.UID()
	}
	if status, ok := tree["status"]; ok {
		shown := made.Clone().Tree()
		shown["status"] = status
		_, code, err = l.send(ctx, http.MethodPut, path+"/"+made.Name()+"/status", shown)
		if code != http.StatusNotFound && code != http.StatusMethodNotAllowed && err != nil { // else it is a field like others
			return fmt.Errorf("its status: %w", err)
		}
	}
	if o.Terminating() {
		_, _, err = l.send(ctx, http.MethodDelete, item, nil)
	} else {
		err = nil
	}
	return err
}

// path is where objects of a kind are created.
func (l *loader) path(o *meta.Object) (string, error) {
	for _, t := range l.s.Objects().Types() {
		for _, v := range t.ServedVersions {
			if t.Kind != o.Kind() || v.String() != o.APIVersion() {
				continue
			}
			path := "/apis/" + o.APIVersion()
			if v.Group == "" {
				path = "/api/" + v.Version
			}
			if t.Namespaced {
				path += "/namespaces/" + cmp.Or(o.Namespace(), "default")
			}
			return path + "/" + t.Plural, nil
		}
	}
	return "", fmt.Errorf("no kind %s of %s is served", o.Kind(), o.APIVersion())
}

// clean returns an object without what a server sets.
func (l *loader) clean(o *meta.Object) map[string]any {
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
			uid, _ := reference["uid"].(string)
			reference = map[string]any{"uid": cmp.Or(l.uids[uid], uid)}
			for field, value := range owner.(map[string]any) {
				if field != "uid" {
					reference[field] = value
				}
			}
			owners[i] = reference
		}
	}
	if owners != nil {
		metadata["ownerReferences"] = owners
	}
	tree["metadata"] = metadata
	return tree
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
