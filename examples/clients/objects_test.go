package clients

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/util/retry"

	"orch.io/controlplane/server/servertest"
)

func configMap(name string, data ...string) *corev1.ConfigMap {
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{}}
	for i := 0; i < len(data); i += 2 {
		c.Data[data[i]] = data[i+1]
	}
	return c
}

func TestTypedClient(t *testing.T) {
	everyWay(t, func(t *testing.T, ctx context.Context, s *servertest.Server, c *rest.Config) {
		maps := typed(t, c).CoreV1().ConfigMaps("default")

		made, err := maps.Create(ctx, configMap("a", "k", "1"), metav1.CreateOptions{})
		require.NoError(t, err)
		require.NotEmpty(t, made.UID)
		require.NotEmpty(t, made.ResourceVersion)
		require.False(t, made.CreationTimestamp.IsZero())
		_, err = maps.Create(ctx, configMap("a"), metav1.CreateOptions{})
		require.True(t, apierrors.IsAlreadyExists(err), "%v", err)
		_, err = maps.Create(ctx, configMap("Not a name"), metav1.CreateOptions{})
		require.True(t, apierrors.IsInvalid(err), "%v", err)

		got, err := maps.Get(ctx, "a", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, made, got)

		got.Data["k"] = "2"
		changed, err := maps.Update(ctx, got, metav1.UpdateOptions{})
		require.NoError(t, err)
		require.Equal(t, "2", changed.Data["k"])
		require.Greater(t, version(t, changed), version(t, made))
		_, err = maps.Update(ctx, made, metav1.UpdateOptions{})
		require.True(t, apierrors.IsConflict(err), "%v", err)

		require.NoError(t, maps.Delete(ctx, "a", metav1.DeleteOptions{}))
		_, err = maps.Get(ctx, "a", metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err), "%v", err)
		require.True(t, apierrors.IsNotFound(maps.Delete(ctx, "a", metav1.DeleteOptions{})))
	})
}

func version(t *testing.T, obj metav1.Object) uint64 {
	t.Helper()
	v, err := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
	require.NoError(t, err)
	return v
}

func TestPatchTypes(t *testing.T) {
	everyWay(t, func(t *testing.T, ctx context.Context, s *servertest.Server, c *rest.Config) {
		maps := typed(t, c).CoreV1().ConfigMaps("default")
		_, err := maps.Create(ctx, configMap("a", "k", "1", "gone", "x"), metav1.CreateOptions{})
		require.NoError(t, err)
		for _, p := range []struct {
			kind types.PatchType
			body string
			want map[string]string
		}{
			{types.JSONPatchType, `[{"op":"test","path":"/data/k","value":"1"},{"op":"replace","path":"/data/k","value":"2"}]`, map[string]string{"k": "2", "gone": "x"}},
			{types.MergePatchType, `{"data":{"gone":null,"m":"3"}}`, map[string]string{"k": "2", "m": "3"}},
			{types.StrategicMergePatchType, `{"data":{"s":"4"}}`, map[string]string{"k": "2", "m": "3", "s": "4"}},
		} {
			got, err := maps.Patch(ctx, "a", p.kind, []byte(p.body), metav1.PatchOptions{})
			require.NoError(t, err, p.kind)
			require.Equal(t, p.want, got.Data, p.kind)
		}
		_, err = maps.Patch(ctx, "a", types.JSONPatchType, []byte(`[{"op":"test","path":"/data/k","value":"no"}]`), metav1.PatchOptions{})
		require.True(t, apierrors.IsInvalid(err), "%v", err)
		_, err = maps.Patch(ctx, "none", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
		require.True(t, apierrors.IsNotFound(err), "%v", err)
	})
}

func TestWatch(t *testing.T) {
	everyWay(t, func(t *testing.T, ctx context.Context, s *servertest.Server, c *rest.Config) {
		maps := typed(t, c).CoreV1().ConfigMaps("default")
		list, err := maps.List(ctx, metav1.ListOptions{})
		require.NoError(t, err)
		w, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion, LabelSelector: "seen=yes"})
		require.NoError(t, err)
		defer w.Stop()

		seen := configMap("a")
		seen.Labels = map[string]string{"seen": "yes"}
		seen, err = maps.Create(ctx, seen, metav1.CreateOptions{})
		require.NoError(t, err)
		_, err = maps.Create(ctx, configMap("hidden"), metav1.CreateOptions{})
		require.NoError(t, err)
		seen.Data = map[string]string{"k": "1"}
		seen, err = maps.Update(ctx, seen, metav1.UpdateOptions{})
		require.NoError(t, err)
		seen.Labels = nil // no longer matches the selector
		_, err = maps.Update(ctx, seen, metav1.UpdateOptions{})
		require.NoError(t, err)

		for _, want := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
			e := next(t, ctx, w)
			require.Equal(t, want, e.Type)
			require.Equal(t, "a", e.Object.(*corev1.ConfigMap).Name)
		}

		// A watch from a known version continues after it.
		resumed, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
		require.NoError(t, err)
		defer resumed.Stop()
		var names []string
		for range 4 {
			names = append(names, next(t, ctx, resumed).Object.(*corev1.ConfigMap).Name)
		}
		require.Equal(t, []string{"a", "hidden", "a", "a"}, names)
	})
}

func next(t *testing.T, ctx context.Context, w watch.Interface) watch.Event {
	t.Helper()
	select {
	case e, ok := <-w.ResultChan():
		require.True(t, ok, "the watch ended")
		return e
	case <-ctx.Done():
		require.FailNow(t, "no event")
		return watch.Event{}
	}
}

// TestPager reads 23 objects in pages of 5 while objects are added: all pages are of one version.
func TestPager(t *testing.T) {
	everyWay(t, func(t *testing.T, ctx context.Context, s *servertest.Server, c *rest.Config) {
		maps := typed(t, c).CoreV1().ConfigMaps("kube-public")
		for i := range 23 {
			_, err := maps.Create(ctx, configMap(fmt.Sprintf("m%02d", i)), metav1.CreateOptions{})
			require.NoError(t, err)
		}
		pages := 0
		p := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := maps.List(ctx, o)
			if err == nil {
				pages++
				_, err = maps.Create(ctx, configMap(fmt.Sprintf("z%02d", pages)), metav1.CreateOptions{})
			}
			return list, err
		})
		p.PageSize = 5
		var names []string
		require.NoError(t, p.EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
			names = append(names, o.(*corev1.ConfigMap).Name)
			return nil
		}))
		require.Equal(t, 5, pages)
		require.Len(t, names, 23)
		require.IsIncreasing(t, names)
	})
}

func TestRetryOnConflict(t *testing.T) {
	ctx := patience(t)
	maps := typed(t, inProcess(servertest.New(t))).CoreV1().ConfigMaps("default")
	_, err := maps.Create(ctx, configMap("counter", "n", "0"), metav1.CreateOptions{})
	require.NoError(t, err)
	const writers, each = 4, 5
	faults := make(chan error, writers)
	for range writers {
		go func() { faults <- count(ctx, maps, each) }()
	}
	for range writers {
		require.NoError(t, <-faults)
	}
	got, err := maps.Get(ctx, "counter", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, strconv.Itoa(writers*each), got.Data["n"])
}

// count increments a counter n times.
func count(ctx context.Context, maps corev1client.ConfigMapInterface, n int) error {
	backoff := retry.DefaultBackoff
	backoff.Steps = 100
	for range n {
		err := retry.RetryOnConflict(backoff, func() error {
			c, err := maps.Get(ctx, "counter", metav1.GetOptions{})
			if err != nil {
				return err
			}
			v, err := strconv.Atoi(c.Data["n"])
			if err != nil {
				return err
			}
			c.Data["n"] = strconv.Itoa(v + 1)
			_, err = maps.Update(ctx, c, metav1.UpdateOptions{})
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func TestDryRunAndStrictFields(t *testing.T) {
	ctx := patience(t)
	maps := typed(t, inProcess(servertest.New(t))).CoreV1().ConfigMaps("default")
	dry, err := maps.Create(ctx, configMap("a"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	require.NoError(t, err)
	require.NotEmpty(t, dry.UID)
	_, err = maps.Get(ctx, "a", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	_, err = maps.Create(ctx, configMap("a"), metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = maps.Patch(ctx, "a", types.MergePatchType, []byte(`{"dta":{}}`), metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict})
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	require.ErrorContains(t, err, `unknown field "dta"`)
}

func TestDeleteCollection(t *testing.T) {
	ctx := patience(t)
	maps := typed(t, inProcess(servertest.New(t))).CoreV1().ConfigMaps("default")
	for i := range 6 {
		m := configMap(fmt.Sprintf("m%d", i))
		m.Labels = map[string]string{"even": strconv.FormatBool(i%2 == 0)}
		_, err := maps.Create(ctx, m, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	require.NoError(t, maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "even=true"}))
	list, err := maps.List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	var names []string
	for _, m := range list.Items {
		names = append(names, m.Name)
	}
	require.Equal(t, []string{"m1", "m3", "m5"}, names)
}
