package fromfake

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
)

// clientset are the rows of the guide about the fake clientset of client-go.
var clientset = []struct {
	does         string
	fake, server string
	try          func(ctx context.Context, c kubernetes.Interface) (string, error)
}{
	{"`resourceVersion` of a created object", "none", "set", func(ctx context.Context, c kubernetes.Interface) (string, error) {
		m, err := c.CoreV1().ConfigMaps("default").Create(ctx, newConfigMap("a"), metav1.CreateOptions{})
		return either(m.ResourceVersion == "", "none", "set"), err
	}},
	{"update with an older `resourceVersion`", "accepted", "Conflict", func(ctx context.Context, c kubernetes.Interface) (string, error) {
		maps := c.CoreV1().ConfigMaps("default")
		stale, err := maps.Create(ctx, newConfigMap("a"), metav1.CreateOptions{})
		if err != nil {
			return "", err
		}
		newer := stale.DeepCopy()
		newer.Data = map[string]string{"a": "b"}
		if _, err := maps.Update(ctx, newer, metav1.UpdateOptions{}); err != nil {
			return "", err
		}
		stale.Data = map[string]string{"a": "c"}
		_, err = maps.Update(ctx, stale, metav1.UpdateOptions{})
		return refused(err), nil
	}},
	{"delete an object with a finalizer", "deleted", "kept", func(ctx context.Context, c kubernetes.Interface) (string, error) {
		maps, m := c.CoreV1().ConfigMaps("default"), newConfigMap("a")
		m.Finalizers = []string{"example.com/held"}
		_, err := maps.Create(ctx, m, metav1.CreateOptions{})
		if err := errors.Join(err, maps.Delete(ctx, "a", metav1.DeleteOptions{})); err != nil {
			return "", err
		}
		_, err = maps.Get(ctx, "a", metav1.GetOptions{})
		return there(err)
	}},
	{"list with the field selector `metadata.name=a` of a and b", "2", "1", func(ctx context.Context, c kubernetes.Interface) (string, error) {
		maps := c.CoreV1().ConfigMaps("default")
		for _, name := range []string{"a", "b"} {
			if _, err := maps.Create(ctx, newConfigMap(name), metav1.CreateOptions{}); err != nil {
				return "", err
			}
		}
		list, err := maps.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=a"})
		if err != nil {
			return "", err
		}
		return fmt.Sprint(len(list.Items)), nil
	}},
}

// TestClientset is TestClaims for the fake clientset.
func TestClientset(t *testing.T) {
	guide, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	for _, claim := range clientset {
		t.Run(claim.does, func(t *testing.T) {
			t.Parallel()
			got, err := claim.try(t.Context(), fake.NewClientset())
			require.NoError(t, err)
			require.Equal(t, claim.fake, got, "the fake clientset")
			s := newServer(t)
			c, err := kubernetes.NewForConfig(&rest.Config{Host: s.Host(), Transport: s.Transport(), QPS: -1})
			require.NoError(t, err)
			got, err = claim.try(t.Context(), c)
			require.NoError(t, err)
			require.Equal(t, claim.server, got, "a server")
			require.Contains(t, string(guide), fmt.Sprintf("| %s | %s | %s |\n", claim.does, claim.fake, claim.server))
		})
	}
}
