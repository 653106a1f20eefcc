package fromfake

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"orch.io/controlplane/examples/operator"
)

// subject is a client of either kind; settle waits for the controllers of the server.
type subject struct {
	client.WithWatch
	settle func()
}

// claims are the rows of the guide: an operation, and its results with the fake client and with a
// server.
var claims = []struct {
	does         string
	fake, server string
	try          func(ctx context.Context, c subject) (string, error)
}{
	{"create an object that violates its schema (101 ships, at most 100 allowed)", "accepted", "Invalid", func(ctx context.Context, c subject) (string, error) {
		return refused(c.Create(ctx, newFleet(101))), nil
	}},
	{"create an object without a field that has a default", `""`, `"white"`, func(ctx context.Context, c subject) (string, error) {
		fleet := newFleet(1)
		err := c.Create(ctx, fleet)
		return fmt.Sprintf("%q", fleet.Spec.Flag), err
	}},
	{"create an object with a misspelt field", "kept", "dropped", func(ctx context.Context, c subject) (string, error) {
		ship := newShip("a")
		ship.Object["spec"] = map[string]any{"captan": "ahab"}
		if err := c.Create(ctx, ship); err != nil {
			return "", err
		}
		if err := c.Get(ctx, client.ObjectKeyFromObject(ship), ship); err != nil {
			return "", err
		}
		_, kept, err := unstructured.NestedString(ship.Object, "spec", "captan")
		return either(kept, "kept", "dropped"), err
	}},
	{"create an object with an invalid name", "accepted", "Invalid", func(ctx context.Context, c subject) (string, error) {
		return refused(c.Create(ctx, newConfigMap("No Name"))), nil
	}},
	{"create an object in a namespace that does not exist", "accepted", "NotFound", func(ctx context.Context, c subject) (string, error) {
		m := newConfigMap("a")
		m.Namespace = "nowhere"
		return refused(c.Create(ctx, m)), nil
	}},
	{"create an object with `generateName`", "named", "named", func(ctx context.Context, c subject) (string, error) {
		m := newConfigMap("")
		m.GenerateName = "a-"
		err := c.Create(ctx, m)
		return either(m.Name != "", "named", "no name"), err
	}},
	{"create an object of an undefined kind", "accepted", "an error", func(ctx context.Context, c subject) (string, error) {
		raft := newShip("a")
		raft.SetKind("Raft")
		return either(c.Create(ctx, raft) == nil, "accepted", "an error"), nil
	}},
	{"create an object with a chosen uid", "kept", "another", func(ctx context.Context, c subject) (string, error) {
		m := newConfigMap("a")
		m.UID = "mine"
		err := c.Create(ctx, m)
		return either(m.UID == "mine", "kept", "another"), err
	}},
	{"uid and creationTimestamp of a created object", "none", "set", func(ctx context.Context, c subject) (string, error) {
		m := newConfigMap("a")
		err := c.Create(ctx, m)
		return either(m.UID == "" && m.CreationTimestamp.IsZero(), "none", either(m.UID != "" && !m.CreationTimestamp.IsZero(), "set", "one of them")), err
	}},
	{"resourceVersions of two objects created one after the other", "the same", "growing", func(ctx context.Context, c subject) (string, error) {
		a, b := newConfigMap("a"), newConfigMap("b")
		err := errors.Join(c.Create(ctx, a), c.Create(ctx, b))
		first, bad := strconv.Atoi(a.ResourceVersion)
		second, worse := strconv.Atoi(b.ResourceVersion)
		return either(first == second, "the same", either(first < second, "growing", "shrinking")), errors.Join(err, bad, worse)
	}},
	{"generation after a change of spec", "0", "2", func(ctx context.Context, c subject) (string, error) {
		fleet := newFleet(1)
		if err := c.Create(ctx, fleet); err != nil {
			return "", err
		}
		fleet.Spec.Ships = 2
		err := c.Update(ctx, fleet)
		return fmt.Sprint(fleet.Generation), err
	}},
	{"update with an older resourceVersion", "Conflict", "Conflict", func(ctx context.Context, c subject) (string, error) {
		m := newConfigMap("a")
		if err := c.Create(ctx, m); err != nil {
			return "", err
		}
		stale := m.DeepCopy()
		m.Data = map[string]string{"a": "b"}
		if err := c.Update(ctx, m); err != nil {
			return "", err
		}
		stale.Data = map[string]string{"a": "c"}
		return refused(c.Update(ctx, stale)), nil
	}},
	{"update that changes nothing", "another resourceVersion", "the same resourceVersion", func(ctx context.Context, c subject) (string, error) {
		m := newConfigMap("a")
		if err := c.Create(ctx, m); err != nil {
			return "", err
		}
		before := m.ResourceVersion
		err := c.Update(ctx, m)
		return either(m.ResourceVersion == before, "the same", "another") + " resourceVersion", err
	}},
	{"update of a Secret that is immutable", "accepted", "Invalid", func(ctx context.Context, c subject) (string, error) {
		yes := true
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"}, Immutable: &yes}
		if err := c.Create(ctx, secret); err != nil {
			return "", err
		}
		secret.Data = map[string][]byte{"a": []byte("b")}
		return refused(c.Update(ctx, secret)), nil
	}},
	{"status in an update of the whole object", "written, unless named in `WithStatusSubresource`", "unchanged", func(ctx context.Context, c subject) (string, error) {
		fleet := newFleet(1)
		if err := c.Create(ctx, fleet); err != nil {
			return "", err
		}
		fleet.Status.Ships = 1
		if err := c.Update(ctx, fleet); err != nil {
			return "", err
		}
		err := c.Get(ctx, client.ObjectKeyFromObject(fleet), fleet)
		return either(fleet.Status.Ships == 1, "written, unless named in `WithStatusSubresource`", "unchanged"), err
	}},
	{"admission: the service account of a pod", `""`, `"default"`, func(ctx context.Context, c subject) (string, error) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}}}
		err := c.Create(ctx, pod)
		return fmt.Sprintf("%q", pod.Spec.ServiceAccountName), err
	}},
	{"delete an object with a finalizer", "kept", "kept", func(ctx context.Context, c subject) (string, error) {
		m := newConfigMap("a")
		m.Finalizers = []string{"example.com/held"}
		if err := errors.Join(c.Create(ctx, m), c.Delete(ctx, m)); err != nil {
			return "", err
		}
		return there(c.Get(ctx, client.ObjectKeyFromObject(m), m))
	}},
	{"delete an owner: the owned object", "kept", "deleted", func(ctx context.Context, c subject) (string, error) {
		owner, owned := newConfigMap("owner"), newConfigMap("owned")
		if err := c.Create(ctx, owner); err != nil {
			return "", err
		}
		owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}}
		if err := errors.Join(c.Create(ctx, owned), c.Delete(ctx, owner)); err != nil {
			return "", err
		}
		c.settle()
		return there(c.Get(ctx, client.ObjectKeyFromObject(owned), owned))
	}},
	{"delete a namespace: the object in it", "kept", "deleted", func(ctx context.Context, c subject) (string, error) {
		namespace, m := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}, newConfigMap("a")
		m.Namespace = "team"
		if err := errors.Join(c.Create(ctx, namespace), c.Create(ctx, m), c.Delete(ctx, namespace)); err != nil {
			return "", err
		}
		c.settle()
		return there(c.Get(ctx, client.ObjectKeyFromObject(m), m))
	}},
	{"list with a limit of 2 of 3", "3", "2", func(ctx context.Context, c subject) (string, error) {
		for _, name := range []string{"a", "b", "c"} {
			if err := c.Create(ctx, newFleet(1, name)); err != nil {
				return "", err
			}
		}
		list := &operator.FleetList{}
		err := c.List(ctx, list, client.Limit(2))
		return fmt.Sprint(len(list.Items)), err
	}},
	{"list Secrets by the field `type`", "an error without `WithIndex`", "the matching Secrets", func(ctx context.Context, c subject) (string, error) {
		list := &corev1.SecretList{}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"}, Type: "example.com/a"}
		other := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "default"}, Type: "example.com/b"}
		if err := errors.Join(c.Create(ctx, secret), c.Create(ctx, other)); err != nil {
			return "", err
		}
		err := c.List(ctx, list, client.MatchingFields{"type": "example.com/a"})
		return either(err != nil, "an error without `WithIndex`", either(len(list.Items) == 1, "the matching Secrets", "others")), nil
	}},
	{"watch from a resourceVersion: the first event", "the next change", "the first change since then", func(ctx context.Context, c subject) (string, error) {
		list := &corev1.ConfigMapList{}
		if err := c.List(ctx, list, client.InNamespace("default")); err != nil {
			return "", err
		}
		if err := c.Create(ctx, newConfigMap("before")); err != nil {
			return "", err
		}
		w, err := c.Watch(ctx, &corev1.ConfigMapList{}, client.InNamespace("default"), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
		if err != nil {
			return "", err
		}
		defer w.Stop()
		if err := c.Create(ctx, newConfigMap("after")); err != nil {
			return "", err
		}
		first := (<-w.ResultChan()).Object.(*corev1.ConfigMap).Name
		return either(first == "before", "the first change since then", "the next change"), nil
	}},
}

// TestClaims runs each row with both clients and compares the results with the guide.
func TestClaims(t *testing.T) {
	guide, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	for _, claim := range claims {
		t.Run(claim.does, func(t *testing.T) {
			t.Parallel()
			got, err := claim.try(t.Context(), subject{fake.NewClientBuilder().WithScheme(newScheme(t)).Build(), func() {}})
			require.NoError(t, err)
			require.Equal(t, claim.fake, got, "the fake client")
			s := newServer(t)
			got, err = claim.try(t.Context(), subject{connect(t, s), s.Settle})
			require.NoError(t, err)
			require.Equal(t, claim.server, got, "a server")
			require.Contains(t, string(guide), fmt.Sprintf("| %s | %s | %s |\n", claim.does, claim.fake, claim.server))
		})
	}
}

// refused returns the reason of an error, or "accepted" if there is no error.
func refused(err error) string {
	if err == nil {
		return "accepted"
	}
	return string(apierrors.ReasonForError(err))
}

func there(err error) (string, error) {
	return either(apierrors.IsNotFound(err), "deleted", "kept"), client.IgnoreNotFound(err)
}

func either(yes bool, a, b string) string {
	if yes {
		return a
	}
	return b
}
