package clients

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"

	"orch.io/controlplane/server/servertest"
)

// TestLeaderElection: there is one leader at a time, and the second candidate takes over when the first
// releases the lease.
func TestLeaderElection(t *testing.T) {
	ctx := patience(t)
	set := typed(t, inProcess(servertest.New(t)))
	leads := make(chan string, 2)
	elect := func(id string) (stop func()) {
		ctx, cancel := context.WithCancel(ctx)
		lock, err := resourcelock.New(resourcelock.LeasesResourceLock, "default", "lock", set.CoreV1(), set.CoordinationV1(),
			resourcelock.ResourceLockConfig{Identity: id})
		require.NoError(t, err)
		e, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: 3 * time.Minute, RenewDeadline: 2 * time.Minute, RetryPeriod: 50 * time.Millisecond, ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { leads <- id },
				OnStoppedLeading: func() {},
			},
		})
		require.NoError(t, err)
		ended := make(chan struct{})
		go func() { defer close(ended); e.Run(ctx) }()
		return func() { cancel(); <-ended }
	}
	stopA := elect("a")
	require.Equal(t, "a", <-leads)
	stopB := elect("b")
	defer stopB()
	lease := func() *coordinationv1.Lease {
		l, err := set.CoordinationV1().Leases("default").Get(ctx, "lock", metav1.GetOptions{})
		require.NoError(t, err)
		return l
	}
	require.Equal(t, "a", *lease().Spec.HolderIdentity)
	stopA()
	require.Equal(t, "b", <-leads)
	require.Equal(t, "b", *lease().Spec.HolderIdentity)
}

// TestEventsRecorder: a recorder writes an event and counts its repetition.
func TestEventsRecorder(t *testing.T) {
	ctx := patience(t)
	set := typed(t, inProcess(servertest.New(t)))
	m, err := set.CoreV1().ConfigMaps("default").Create(ctx, configMap("a"), metav1.CreateOptions{})
	require.NoError(t, err)
	broadcaster := record.NewBroadcaster()
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: set.CoreV1().Events("")})
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "test"})
	for range 3 {
		recorder.Event(m, corev1.EventTypeNormal, "Seen", "it was seen")
	}
	var events []corev1.Event
	require.Eventually(t, func() bool {
		list, err := set.CoreV1().Events("default").List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=a,reason=Seen"})
		if err != nil {
			t.Error(err)
			return true
		}
		events = list.Items
		return len(events) == 1 && events[0].Count == 3
	}, patienceSpan, tick)
	require.Equal(t, m.UID, events[0].InvolvedObject.UID)
}

// TestApply applies the typed apply configurations of client-go.
func TestApply(t *testing.T) {
	everyWay(t, func(t *testing.T, ctx context.Context, s *servertest.Server, c *rest.Config) {
		maps := typed(t, c).CoreV1().ConfigMaps("default")
		mine := corev1apply.ConfigMap("a", "default").WithData(map[string]string{"k": "1", "mine": "x"})
		made, err := maps.Apply(ctx, mine, metav1.ApplyOptions{FieldManager: "one"})
		require.NoError(t, err)
		require.Equal(t, map[string]string{"k": "1", "mine": "x"}, made.Data)

		again, err := maps.Apply(ctx, mine, metav1.ApplyOptions{FieldManager: "one"})
		require.NoError(t, err)
		require.Equal(t, made.ResourceVersion, again.ResourceVersion, "nothing changed")

		yours := corev1apply.ConfigMap("a", "default").WithData(map[string]string{"k": "2"})
		_, err = maps.Apply(ctx, yours, metav1.ApplyOptions{FieldManager: "two"})
		require.True(t, apierrors.IsConflict(err), "%v", err)
		require.True(t, apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict), "%v", err)
		require.True(t, strings.Contains(err.Error(), `"one"`) && strings.Contains(err.Error(), ".data.k"), "%v", err)

		forced, err := maps.Apply(ctx, yours, metav1.ApplyOptions{FieldManager: "two", Force: true})
		require.NoError(t, err)
		require.Equal(t, map[string]string{"k": "2", "mine": "x"}, forced.Data)

		owned, err := corev1apply.ExtractConfigMap(forced, "two")
		require.NoError(t, err)
		require.Equal(t, map[string]string{"k": "2"}, owned.Data)

		gone, err := maps.Apply(ctx, corev1apply.ConfigMap("a", "default"), metav1.ApplyOptions{FieldManager: "one"})
		require.NoError(t, err)
		require.Equal(t, map[string]string{"k": "2"}, gone.Data, "what the owner no longer applies goes")
	})
}

// TestPropagation deletes an owner with each of the three propagation policies.
func TestPropagation(t *testing.T) {
	seeded := servertest.New(t)
	for policy, stays := range map[metav1.DeletionPropagation]bool{
		metav1.DeletePropagationForeground: false, metav1.DeletePropagationBackground: false, metav1.DeletePropagationOrphan: true,
	} {
		t.Run(string(policy), func(t *testing.T) {
			ctx := patience(t)
			s := seeded.Fork(t)
			maps := typed(t, inProcess(s)).CoreV1().ConfigMaps("default")
			owner, err := maps.Create(ctx, configMap("owner"), metav1.CreateOptions{})
			require.NoError(t, err)
			yes := true
			part := configMap("part")
			part.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID, BlockOwnerDeletion: &yes}}
			_, err = maps.Create(ctx, part, metav1.CreateOptions{})
			require.NoError(t, err)
			require.NoError(t, maps.Delete(ctx, "owner", metav1.DeleteOptions{PropagationPolicy: &policy}))
			s.Settle()
			_, err = maps.Get(ctx, "owner", metav1.GetOptions{})
			require.True(t, apierrors.IsNotFound(err), "%v", err)
			part, err = maps.Get(ctx, "part", metav1.GetOptions{})
			if stays {
				require.NoError(t, err)
				require.Empty(t, part.OwnerReferences)
			} else {
				require.True(t, apierrors.IsNotFound(err), "%v", err)
			}
		})
	}
}

// TestNamespaceDeletion: a deleted namespace is emptied and removed, after the finalizers of its
// objects are gone.
func TestNamespaceDeletion(t *testing.T) {
	ctx := patience(t)
	s := servertest.New(t)
	set := typed(t, inProcess(s))
	makeFilled(t, ctx, set)
	require.NoError(t, set.CoreV1().Namespaces().Delete(ctx, "team", metav1.DeleteOptions{}))
	s.Settle()
	ns, err := set.CoreV1().Namespaces().Get(ctx, "team", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, corev1.NamespaceTerminating, ns.Status.Phase)
	_, err = set.CoreV1().Secrets("team").Get(ctx, "plain", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	_, err = set.CoreV1().ConfigMaps("team").Create(ctx, configMap("late"), metav1.CreateOptions{})
	require.True(t, apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause), "%v", err)

	held, err := set.CoreV1().ConfigMaps("team").Get(ctx, "held", metav1.GetOptions{})
	require.NoError(t, err)
	require.NotNil(t, held.DeletionTimestamp)
	held.Finalizers = nil
	_, err = set.CoreV1().ConfigMaps("team").Update(ctx, held, metav1.UpdateOptions{})
	require.NoError(t, err)
	s.Settle()
	_, err = set.CoreV1().Namespaces().Get(ctx, "team", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

func makeFilled(t *testing.T, ctx context.Context, set kubernetes.Interface) {
	t.Helper()
	_, err := set.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	held := configMap("held")
	held.Finalizers = []string{"example.com/hold"}
	_, err = set.CoreV1().ConfigMaps("team").Create(ctx, held, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = set.CoreV1().Secrets("team").Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "plain"}}, metav1.CreateOptions{})
	require.NoError(t, err)
}
