// Package oldclients tests client-go 0.17 with API versions that later releases removed.
package oldclients

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
	extensions "k8s.io/api/extensions/v1beta1"
	policy "k8s.io/api/policy/v1beta1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"orch.io/controlplane/examples/oldclients/internal/typed"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
)

// TestSubresources: scale, rollback and eviction work with their former versions.
func TestSubresources(t *testing.T) {
	for _, content := range []string{typed.JSON, typed.Protobuf} {
		t.Run(content, func(t *testing.T) {
			s := servertest.New(t, func(b *server.Builder) { b.Release = "1.15" })
			c, err := kubernetes.NewForConfig(typed.ConfigOf[rest.Config](s.Host(), s.Transport(), content))
			require.NoError(t, err)
			pod := core.PodSpec{Containers: []core.Container{{Name: "c", Image: "i"}}}
			replicas := int32(2)
			deployments := c.ExtensionsV1beta1().Deployments("default")
			_, err = deployments.Create(&extensions.Deployment{ObjectMeta: meta.ObjectMeta{Name: "a"}, Spec: extensions.DeploymentSpec{
				Replicas: &replicas, Template: core.PodTemplateSpec{ObjectMeta: meta.ObjectMeta{Labels: map[string]string{"app": "a"}}, Spec: pod}}})
			require.NoError(t, err)
			scale, err := deployments.GetScale("a", meta.GetOptions{})
			require.NoError(t, err)
			assert.EqualValues(t, 2, scale.Spec.Replicas)
			assert.Equal(t, "app=a", scale.Status.TargetSelector)
			scale.Spec.Replicas = 5
			scale, err = deployments.UpdateScale("a", scale)
			require.NoError(t, err)
			assert.EqualValues(t, 5, scale.Spec.Replicas)
			require.NoError(t, deployments.Rollback(&extensions.DeploymentRollback{Name: "a", RollbackTo: extensions.RollbackConfig{Revision: 3}}))
			got, err := deployments.Get("a", meta.GetOptions{})
			require.NoError(t, err)
			assert.Equal(t, &extensions.RollbackConfig{Revision: 3}, got.Spec.RollbackTo)
			assert.EqualValues(t, 5, *got.Spec.Replicas)
			_, err = c.CoreV1().ReplicationControllers("default").Create(&core.ReplicationController{ObjectMeta: meta.ObjectMeta{Name: "r"}, Spec: core.ReplicationControllerSpec{
				Replicas: &replicas, Template: &core.PodTemplateSpec{ObjectMeta: meta.ObjectMeta{Labels: map[string]string{"app": "r"}}, Spec: pod}}})
			require.NoError(t, err)
			size := func(r *rest.Request) *rest.Request {
				return r.Namespace("default").Resource("replicationcontrollers").Name("r").SubResource("scale")
			}
			controllers := c.ExtensionsV1beta1().RESTClient() // client-go has no client of these
			require.NoError(t, size(controllers.Get()).Do().Into(scale))
			assert.EqualValues(t, 2, scale.Spec.Replicas)
			assert.Equal(t, map[string]string{"app": "r"}, scale.Status.Selector)
			scale.Spec.Replicas = 4
			require.NoError(t, size(controllers.Put()).Body(scale).Do().Into(scale))
			assert.EqualValues(t, 4, scale.Spec.Replicas)
			pods := c.CoreV1().Pods("default")
			_, err = pods.Create(&core.Pod{ObjectMeta: meta.ObjectMeta{Name: "p"}, Spec: pod})
			require.NoError(t, err)
			now := int64(0)
			require.NoError(t, c.PolicyV1beta1().Evictions("default").Evict(&policy.Eviction{
				ObjectMeta: meta.ObjectMeta{Name: "p", Namespace: "default"}, DeleteOptions: &meta.DeleteOptions{GracePeriodSeconds: &now}}))
			left, err := pods.List(meta.ListOptions{})
			require.NoError(t, err)
			assert.Empty(t, left.Items)
		})
	}
}
