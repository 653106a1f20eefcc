package clients

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"orch.io/controlplane/server/servertest"
)

func podsOf(app, image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: image}}},
	}
}

func newDeployment(app string, replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: app}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}, Template: podsOf(app, "image:1"),
	}}
}

// rolledOut waits until a deployment runs n pods of an image, and no others.
func rolledOut(t *testing.T, ctx context.Context, set kubernetes.Interface, namespace, name, image string, n int) {
	t.Helper()
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		d, err := set.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
		require.NoError(t, err)
		s := d.Status
		assert.Equal(t, []any{d.Generation, n, n, n}, []any{s.ObservedGeneration, int(s.Replicas), int(s.UpdatedReplicas), int(s.AvailableReplicas)})
		pods, err := set.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
		require.NoError(t, err)
		assert.Len(t, pods.Items, n)
		for _, p := range pods.Items {
			assert.Equal(t, image, p.Spec.Containers[0].Image)
		}
	}, patienceSpan, tick)
}

// TestRollout rolls out a deployment, a new image and a new size with a controller based on informers.
// Dependents are deleted with the deployment.
func TestRollout(t *testing.T) {
	everyWay(t, func(t *testing.T, ctx context.Context, s *servertest.Server, c *rest.Config) {
		set := typed(t, c)
		runWorkloads(t, ctx, set)
		deployments := set.AppsV1().Deployments("default")
		_, err := deployments.Create(ctx, newDeployment("web", 3), metav1.CreateOptions{})
		require.NoError(t, err)
		rolledOut(t, ctx, set, "default", "web", "image:1", 3)

		_, err = deployments.UpdateScale(ctx, "web", &autoscalingv1.Scale{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}, Spec: autoscalingv1.ScaleSpec{Replicas: 5},
		}, metav1.UpdateOptions{})
		require.NoError(t, err)
		rolledOut(t, ctx, set, "default", "web", "image:1", 5)

		_, err = deployments.Patch(ctx, "web", "application/strategic-merge-patch+json",
			[]byte(`{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"image:2"}]}}}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		rolledOut(t, ctx, set, "default", "web", "image:2", 5)
		sets, err := set.AppsV1().ReplicaSets("default").List(ctx, metav1.ListOptions{})
		require.NoError(t, err)
		require.Len(t, sets.Items, 2)

		foreground := metav1.DeletePropagationForeground
		require.NoError(t, deployments.Delete(ctx, "web", metav1.DeleteOptions{PropagationPolicy: &foreground}))
		require.Eventually(t, func() bool {
			_, err := deployments.Get(ctx, "web", metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		}, patienceSpan, tick, "it goes after what it owns")
		require.Eventually(t, func() bool {
			sets, err := set.AppsV1().ReplicaSets("default").List(ctx, metav1.ListOptions{})
			if err != nil || len(sets.Items) != 0 {
				return false
			}
			pods, err := set.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
			return err == nil && len(pods.Items) == 0
		}, patienceSpan, tick, "also those that its controller made when it did not see yet that it goes")
	})
}

// TestAdoption: a ReplicaSet adopts a pod without an owner, and releases a pod whose labels no longer
// match.
func TestAdoption(t *testing.T) {
	everyWay(t, func(t *testing.T, ctx context.Context, s *servertest.Server, c *rest.Config) {
		set := typed(t, c)
		pods, two := set.CoreV1().Pods("default"), int32(2)
		orphan := podsOf("solo", "image:1")
		orphan.Name = "orphan"
		_, err := pods.Create(ctx, &corev1.Pod{ObjectMeta: orphan.ObjectMeta, Spec: orphan.Spec}, metav1.CreateOptions{})
		require.NoError(t, err)
		// Start the controller now: it must know the orphan when it sees the ReplicaSet, and the
		// watches of two kinds have no common order.
		runWorkloads(t, ctx, set)
		owner, err := set.AppsV1().ReplicaSets("default").Create(ctx, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "solo"}, Spec: appsv1.ReplicaSetSpec{
			Replicas: &two, Selector: &metav1.LabelSelector{MatchLabels: orphan.Labels}, Template: podsOf("solo", "image:1"),
		}}, metav1.CreateOptions{})
		require.NoError(t, err)
		owned := func(names ...string) {
			t.Helper()
			require.EventuallyWithT(t, func(t *assert.CollectT) {
				list, err := pods.List(ctx, metav1.ListOptions{})
				require.NoError(t, err)
				have := []string{}
				for _, p := range list.Items {
					if metav1.IsControlledBy(&p, owner) {
						have = append(have, p.Name)
					}
				}
				assert.Equal(t, names, have)
			}, patienceSpan, tick)
		}
		owned("orphan", "solo-0")
		_, err = pods.Patch(ctx, "orphan", "application/merge-patch+json", []byte(`{"metadata":{"labels":{"app":"other"}}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		owned("solo-0", "solo-1")
		released, err := pods.Get(ctx, "orphan", metav1.GetOptions{})
		require.NoError(t, err)
		require.Empty(t, released.OwnerReferences)
	})
}

// TestDeleteNamespaceWithWorkloads: a namespace is emptied while a controller keeps creating missing
// objects.
func TestDeleteNamespaceWithWorkloads(t *testing.T) {
	everyWay(t, func(t *testing.T, ctx context.Context, s *servertest.Server, c *rest.Config) {
		set := typed(t, c)
		runWorkloads(t, ctx, set)
		_, err := set.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}, metav1.CreateOptions{})
		require.NoError(t, err)
		_, err = set.AppsV1().Deployments("team").Create(ctx, newDeployment("web", 4), metav1.CreateOptions{})
		require.NoError(t, err)
		rolledOut(t, ctx, set, "team", "web", "image:1", 4)
		require.NoError(t, set.CoreV1().Namespaces().Delete(ctx, "team", metav1.DeleteOptions{}))
		require.Eventually(t, func() bool {
			_, err := set.CoreV1().Namespaces().Get(ctx, "team", metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		}, patienceSpan, tick)
	})
}

// TestKubectlRollout: kubectl follows, scales and undoes a rollout.
func TestKubectlRollout(t *testing.T) {
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Skip("there is no kubectl on this machine")
	}
	ctx, s, home := patience(t), servertest.New(t), t.TempDir()
	set := typed(t, inProcess(s))
	runWorkloads(t, ctx, set)
	kubectl := func(want string, words ...string) {
		t.Helper()
		cmd := exec.CommandContext(ctx, "kubectl", append(words, "--server="+s.URL())...)
		cmd.Env = []string{"HOME=" + home, "KUBECONFIG=" + home + "/none", "PATH=" + os.Getenv("PATH")}
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "kubectl %s: %s", strings.Join(words, " "), out)
		require.Contains(t, string(out), want)
	}
	kubectl("created", "create", "deployment", "web", "--image=image:1", "--replicas=2")
	kubectl("successfully rolled out", "rollout", "status", "deployment/web", "--timeout=60s")
	kubectl("scaled", "scale", "deployment/web", "--replicas=3")
	kubectl("successfully rolled out", "rollout", "status", "deployment/web", "--timeout=60s")
	kubectl("updated", "set", "image", "deployment/web", "image=image:2")
	kubectl("successfully rolled out", "rollout", "status", "deployment/web", "--timeout=60s")
	kubectl("2         <none>", "rollout", "history", "deployment/web")
	kubectl("image:1", "rollout", "history", "deployment/web", "--revision=1")
	kubectl("rolled back", "rollout", "undo", "deployment/web")
	kubectl("successfully rolled out", "rollout", "status", "deployment/web", "--timeout=60s")
	rolledOut(t, ctx, set, "default", "web", "image:1", 3)
	kubectl("3         <none>", "rollout", "history", "deployment/web")
	kubectl("deleted", "delete", "deployment", "web", "--cascade=foreground", "--timeout=60s")
	s.Settle()
	pods, err := set.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, pods.Items)
}
