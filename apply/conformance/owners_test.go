package conformance

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	gv "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/apply"
)

// noop converts, defaults and creates objects of the only version.
type noop struct{}

func (noop) Convert(in, out, context any) error { return nil }
func (noop) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}
func (noop) ConvertFieldLabel(_ gv.GroupVersionKind, l, v string) (string, string, error) {
	return l, v, nil
}
func (noop) Default(runtime.Object) {}
func (noop) New(kind gv.GroupVersionKind) (runtime.Object, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	return u, nil
}

// TestRandomWritesHaveSameOwners plays the same random writes on both sides.
func TestRandomWritesHaveSameOwners(t *testing.T) {
	for _, kind := range []gv.GroupVersionKind{
		{Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Service"}, {Version: "v1", Kind: "Pod"},
		{Group: "apps", Version: "v1", Kind: "Deployment"},
	} {
		t.Run(kind.Kind, func(t *testing.T) {
			converter := applyconfigurations.NewTypeConverter(scheme.Scheme)
			empty, _ := noop{}.New(kind)
			value, err := converter.ObjectToTyped(empty)
			require.NoError(t, err)
			types := &fromTypes{all: value.Schema(), done: map[string]*schema.Schema{}}
			s := types.ref(value.TypeRef())
			filter := map[fieldpath.APIVersion]fieldpath.Filter{fieldpath.APIVersion(kind.GroupVersion().String()): fieldpath.NewExcludeSetFilter(fieldpath.NewSet(fieldpath.MakePathOrDie("status")))}
			theirs, err := managedfields.NewDefaultFieldManager(converter, noop{}, noop{}, noop{}, kind, kind.GroupVersion(), "", filter)
			require.NoError(t, err)
			ours := apply.NewFieldManager(apply.Config{Kind: kind.Kind,
				Versions: []apply.Version{{APIVersion: kind.GroupVersion().String(), Schema: s, Status: true}}})
			for seed := range uint64(150) {
				at := play(t, seed, kind, s, theirs, ours)
				at.sameExtracts(t, typed.ParseableType{Schema: value.Schema(), TypeRef: value.TypeRef()}, ours)
				at.sameUpgrade(t)
			}
		})
	}
}

type sides struct {
	theirs *unstructured.Unstructured
	ours   *meta.Object
}

func play(t *testing.T, seed uint64, kind gv.GroupVersionKind, s *schema.Schema, theirs *managedfields.FieldManager, ours *apply.FieldManager) *sides {
	r := random{rand.New(rand.NewPCG(seed, 2)), 0.3}
	var at sides
	var log []string
	for range 10 {
		manager, force := "m-"+r.word(), r.IntN(3) == 0
		body := r.object(s, 7)
		body["apiVersion"], body["kind"] = kind.GroupVersion().String(), kind.Kind
		body["metadata"] = map[string]any{"name": "x", "labels": map[string]any{r.word(): r.word()}, "finalizers": []any{r.word()}}
		if r.IntN(2) == 0 {
			log = append(log, manager+" applies "+text(body))
			at.apply(t, log, kind, theirs, ours, body, manager, force)
		} else {
			if at.ours != nil && r.IntN(2) == 0 {
				body = apply.MergePatch(at.ours.Tree(), body)
			}
			delete(body["metadata"].(map[string]any), "managedFields")
			log = append(log, manager+" updates "+text(body))
			at.update(t, log, kind, theirs, ours, body, manager)
		}
		if at.ours != nil {
			at.same(t, log)
		}
	}
	return &at
}

// sameExtracts compares the fields that each manager owns by Apply.
func (at *sides) sameExtracts(t *testing.T, of typed.ParseableType, ours *apply.FieldManager) {
	if at.ours == nil {
		return
	}
	for _, word := range words {
		w := map[string]any{}
		require.NoError(t, managedfields.ExtractInto(at.theirs, of, "m-"+word, &w, ""))
		got, err := ours.Extract(at.ours, "m-"+word, "")
		require.NoError(t, err)
		g := got.Tree()
		got.Delete("metadata", "name")
		for _, o := range []map[string]any{g, w} { // the caller of ExtractInto sets the identity
			delete(o, "apiVersion")
			delete(o, "kind")
			if m, ok := o["metadata"].(map[string]any); ok && len(m) == 0 {
				delete(o, "metadata")
			}
		}
		require.JSONEq(t, text(w), text(g), "%s\n%s", word, text(at.ours.Tree()))
	}
}

// sameUpgrade compares the upgrade of the managers from client-side to server-side apply.
func (at *sides) sameUpgrade(t *testing.T) {
	if at.ours == nil {
		return
	}
	for _, to := range []string{"m-a", "other"} {
		theirs := at.theirs.DeepCopy()
		require.NoError(t, csaupgrade.UpgradeManagedFields(theirs, sets.New("m-b"), to))
		ours, err := apply.UpgradeManagedFields(at.ours, to, "m-b")
		require.NoError(t, err)
		require.JSONEq(t, bare(t, theirs.Object), bare(t, ours.Tree()))
	}
}

func (at *sides) live(kind gv.GroupVersionKind) *unstructured.Unstructured {
	if at.theirs == nil {
		o, _ := noop{}.New(kind)
		return o.(*unstructured.Unstructured)
	}
	return at.theirs
}

func (at *sides) apply(t *testing.T, log []string, kind gv.GroupVersionKind, theirs *managedfields.FieldManager, ours *apply.FieldManager, body map[string]any, manager string, force bool) {
	want, theirErr := theirs.Apply(at.live(kind), &unstructured.Unstructured{Object: clone(body)}, manager, force)
	got, err := ours.Apply(at.ours, meta.NewObject(clone(body)), apply.Options{Manager: manager, APIVersion: kind.GroupVersion().String(), Now: time.Now(), Force: force})
	if theirErr != nil {
		require.Error(t, err, "%s\n%v", strings.Join(log, "\n"), theirErr)
		if strings.Contains(theirErr.Error(), "conflict") {
			require.True(t, meta.IsConflict(err), "%s\n%v\n%v", strings.Join(log, "\n"), theirErr, err)
		}
		return
	}
	require.NoError(t, err, strings.Join(log, "\n"))
	at.keep(want.(*unstructured.Unstructured), got)
}

func (at *sides) update(t *testing.T, log []string, kind gv.GroupVersionKind, theirs *managedfields.FieldManager, ours *apply.FieldManager, body map[string]any, manager string) {
	want, err := theirs.Update(at.live(kind), &unstructured.Unstructured{Object: clone(body)}, manager)
	require.NoError(t, err, strings.Join(log, "\n"))
	got := meta.NewObject(clone(body))
	require.NoError(t, ours.Update(at.ours, got, apply.Options{Manager: manager, APIVersion: kind.GroupVersion().String(), Now: time.Now()}), strings.Join(log, "\n"))
	at.keep(want.(*unstructured.Unstructured), got)
}

func (at *sides) keep(theirs *unstructured.Unstructured, ours *meta.Object) {
	theirs.SetUID("1")
	ours.SetUID("1")
	at.theirs, at.ours = theirs, ours
}

func (at *sides) same(t *testing.T, log []string) {
	want, got := bare(t, at.theirs.Object), bare(t, at.ours.Tree())
	require.JSONEq(t, want, got, strings.Join(log, "\n"))
}

// bare returns an object as JSON without the times of its owners.
func bare(t *testing.T, tree map[string]any) string {
	var c map[string]any
	require.NoError(t, json.Unmarshal([]byte(text(tree)), &c))
	list, _ := c["metadata"].(map[string]any)["managedFields"].([]any)
	owners := map[string]any{}
	for _, e := range list {
		m := e.(map[string]any)
		owners[m["manager"].(string)+" "+m["operation"].(string)] = m["fieldsV1"]
	}
	c["metadata"].(map[string]any)["managedFields"] = owners
	return text(c)
}
