package door_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
)

// TestBindingAndEvictionAreAdmittedOnce checks that admission gets the body of a binding or an
// eviction, and the changes of a program's subresource, but not the resulting change of the pod a
// second time.
func TestBindingAndEvictionAreAdmittedOnce(t *testing.T) {
	t.Parallel()
	var seen []string
	refuses := false
	a := servertest.New(t, func(b *server.Builder) {
		b.Admission = append(b.Admission, admission.Plugin{
			Name: "Watcher", Rules: []admission.Rule{{Resources: []string{"pods/binding", "pods/eviction"}}},
			Mutate: func(_ context.Context, r *admission.Request) error {
				kind, known := r.Representations.Kind(r.RequestResource.GroupVersion())
				assert.True(t, known)
				shown, err := r.Representations.Show(t.Context(), r.Object, r.RequestResource.GroupVersion())
				assert.NoError(t, err)
				assert.Equal(t, []any{kind.Kind, r.Object.Tree()}, []any{shown.Kind(), shown.Tree()})
				assert.Equal(t, r.Operation == admission.Update, r.Old != nil)
				seen = append(seen, string(r.Operation)+" "+r.Kind.Kind+" "+r.Subresource)
				return nil
			},
			Validate: func(context.Context, *admission.Request) error {
				if refuses {
					return errors.New("not through here")
				}
				return nil
			},
		})
	})
	h, c, pods := apitest.InProcess(t, a), a.Objects(), meta.GroupResource{Resource: "pods"}
	for _, name := range []string{"a", "b"} {
		h.Must(201, "POST", apitest.PodsPath, `{"metadata":{"name":"`+name+`"},"spec":{"containers":[{"name":"c","image":"i"}]}}`)
	}
	h.Must(201, "POST", apitest.PodsPath+"/a/binding", `{"metadata":{"name":"a"},"target":{"name":"n"}}`)
	h.Must(201, "POST", apitest.PodsPath+"/a/eviction", `{"metadata":{"name":"a"}}`)
	require.Equal(t, []string{"CREATE Binding binding", "CREATE Eviction eviction"}, seen)

	seen = nil
	change := map[string]func(*meta.Object) error{
		"binding":  func(o *meta.Object) error { o.Set("n", "spec", "nodeName"); return nil },
		"eviction": func(o *meta.Object) error { o.SetCondition("DisruptionTarget", "True", "", ""); return nil },
	}
	for _, refuses = range []bool{true, false} {
		for _, sub := range []string{"binding", "eviction"} {
			pod, err := c.Update(t.Context(), pods, meta.Key{Namespace: "default", Name: "b"}, sub, change[sub])
			if refuses {
				require.ErrorContains(t, err, "not through here")
				continue
			}
			require.NoError(t, err)
			assert.Equal(t, "n", pod.String("spec", "nodeName"))
		}
	}
	assert.Equal(t, []string{"UPDATE Pod binding", "UPDATE Pod eviction", "UPDATE Pod binding", "UPDATE Pod eviction"}, seen)
}
