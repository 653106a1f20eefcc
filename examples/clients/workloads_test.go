package clients

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

const revisionKey = "deployment.kubernetes.io/revision"

// workloads is a controller that creates ReplicaSets for Deployments and Pods for ReplicaSets. It is
// written like other controllers with client-go: it reads from informers, processes keys of a queue,
// and writes with a typed client. Pods run as soon as they exist.
type workloads struct {
	t           *testing.T
	set         kubernetes.Interface
	deployments appslisters.DeploymentLister
	replicaSets appslisters.ReplicaSetLister
	pods        corelisters.PodLister
	queue       workqueue.TypedRateLimitingInterface[task]
}

// task is the key of an object to process.
type task struct{ kind, namespace, name string }

// runWorkloads runs the controller until the test ends.
func runWorkloads(t *testing.T, ctx context.Context, set kubernetes.Interface) {
	f := informers.NewSharedInformerFactory(set, 0)
	w := &workloads{
		t: t, set: set, deployments: f.Apps().V1().Deployments().Lister(), replicaSets: f.Apps().V1().ReplicaSets().Lister(), pods: f.Core().V1().Pods().Lister(),
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[task]()),
	}
	var synced []cache.InformerSynced
	for kind, i := range map[string]cache.SharedIndexInformer{
		"Deployment": f.Apps().V1().Deployments().Informer(), "ReplicaSet": f.Apps().V1().ReplicaSets().Informer(), "Pod": f.Core().V1().Pods().Informer(),
	} {
		h, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { w.enqueue(kind, obj) },
			UpdateFunc: func(old, obj any) { w.enqueue(kind, old); w.enqueue(kind, obj) },
			DeleteFunc: func(obj any) { w.enqueue(kind, obj) },
		})
		require.NoError(t, err)
		synced = append(synced, h.HasSynced)
	}
	stop := start(ctx, f)
	require.True(t, cache.WaitForCacheSync(ctx.Done(), synced...))
	var working sync.WaitGroup
	for range 4 {
		working.Go(func() {
			for w.work(ctx) {
			}
		})
	}
	t.Cleanup(func() { w.queue.ShutDown(); working.Wait(); stop() })
}

// enqueue queues the objects that an event concerns: the object, its owner, and for an object without an
// owner all objects that may adopt it.
func (w *workloads) enqueue(kind string, obj any) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	o := obj.(metav1.Object)
	w.queue.Add(task{kind, o.GetNamespace(), o.GetName()})
	if owner := metav1.GetControllerOf(o); owner != nil {
		w.queue.Add(task{owner.Kind, o.GetNamespace(), owner.Name})
	} else if kind == "Pod" {
		sets, _ := w.replicaSets.ReplicaSets(o.GetNamespace()).List(labels.Everything())
		for _, s := range sets {
			w.queue.Add(task{"ReplicaSet", s.Namespace, s.Name})
		}
	}
}

// work processes one task and retries it later if it fails.
func (w *workloads) work(ctx context.Context) bool {
	key, ended := w.queue.Get()
	if ended {
		return false
	}
	defer w.queue.Done(key)
	var err error
	switch key.kind {
	case "Deployment":
		err = w.deploy(ctx, key)
	case "ReplicaSet":
		err = w.replicate(ctx, key)
	case "Pod":
		err = w.runPod(ctx, key)
	}
	if err == nil || apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		w.queue.Forget(key)
	} else {
		if !apierrors.IsConflict(err) && ctx.Err() == nil {
			w.t.Errorf("%v: %v", key, err)
		}
		w.queue.AddRateLimited(key)
	}
	return true
}

// deploy scales the ReplicaSet of the deployment's template to all pods, and older ReplicaSets to none.
func (w *workloads) deploy(ctx context.Context, key task) error {
	d, err := w.deployments.Deployments(key.namespace).Get(key.name)
	if err != nil || d.DeletionTimestamp != nil {
		return err
	}
	all, err := w.replicaSets.ReplicaSets(d.Namespace).List(labels.SelectorFromSet(d.Spec.Selector.MatchLabels))
	if err != nil {
		return err
	}
	name, revision := d.Name+"-"+templateHash(&d.Spec.Template), 0
	status := appsv1.DeploymentStatus{ObservedGeneration: d.Generation}
	var current *appsv1.ReplicaSet
	var older []*appsv1.ReplicaSet
	for _, rs := range all {
		if !metav1.IsControlledBy(rs, d) {
			continue
		}
		n, _ := strconv.Atoi(rs.Annotations[revisionKey])
		revision = max(revision, n)
		status.Replicas += rs.Status.Replicas
		status.ReadyReplicas += rs.Status.ReadyReplicas
		status.AvailableReplicas += rs.Status.AvailableReplicas
		if rs.Name == name {
			current = rs
		} else {
			older = append(older, rs)
		}
	}
	if current == nil {
		_, err := w.set.AppsV1().ReplicaSets(d.Namespace).Create(ctx, newReplicaSet(d, name, revision+1), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil // the event of the informer enqueues it again
		}
		return err
	}
	status.UpdatedReplicas = current.Status.Replicas
	if err := w.roll(ctx, d, current, older, revision); err != nil {
		return err
	}
	status.UnavailableReplicas = max(0, *d.Spec.Replicas-status.AvailableReplicas)
	status.TerminatingReplicas, status.Conditions = d.Status.TerminatingReplicas, d.Status.Conditions
	return w.tellDeployment(ctx, d, current, status)
}

// roll sets the sizes of the ReplicaSets and the revision of the current one.
func (w *workloads) roll(ctx context.Context, d *appsv1.Deployment, current *appsv1.ReplicaSet, older []*appsv1.ReplicaSet, revision int) error {
	if n, _ := strconv.Atoi(current.Annotations[revisionKey]); n < revision || *current.Spec.Replicas != *d.Spec.Replicas {
		next := current.DeepCopy()
		if n < revision { // it was the current one before
			next.Annotations[revisionKey] = strconv.Itoa(revision + 1)
		}
		next.Spec.Replicas = d.Spec.Replicas
		if _, err := w.set.AppsV1().ReplicaSets(d.Namespace).Update(ctx, next, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	for _, rs := range older {
		if *rs.Spec.Replicas == 0 || current.Status.AvailableReplicas < *d.Spec.Replicas {
			continue
		}
		scale, err := w.set.AppsV1().ReplicaSets(d.Namespace).GetScale(ctx, rs.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		scale.Spec.Replicas = 0
		if _, err := w.set.AppsV1().ReplicaSets(d.Namespace).UpdateScale(ctx, rs.Name, scale, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

func (w *workloads) tellDeployment(ctx context.Context, d *appsv1.Deployment, current *appsv1.ReplicaSet, status appsv1.DeploymentStatus) error {
	next := d.DeepCopy()
	if revision := current.Annotations[revisionKey]; d.Annotations[revisionKey] != revision {
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, revisionKey, revision)
		_, err := w.set.AppsV1().Deployments(d.Namespace).Update(ctx, next, metav1.UpdateOptions{})
		return err
	}
	if next.Status = status; fmt.Sprint(status) == fmt.Sprint(d.Status) {
		return nil
	}
	_, err := w.set.AppsV1().Deployments(d.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{})
	return err
}

func templateHash(t *corev1.PodTemplateSpec) string {
	data, _ := json.Marshal(t)
	sum := fnv.New32a()
	_, _ = sum.Write(data)
	return strconv.FormatUint(uint64(sum.Sum32()), 36)
}

func newReplicaSet(d *appsv1.Deployment, name string, revision int) *appsv1.ReplicaSet {
	template := d.Spec.Template.DeepCopy()
	metav1.SetMetaDataLabel(&template.ObjectMeta, appsv1.DefaultDeploymentUniqueLabelKey, name)
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: d.Namespace, Labels: template.Labels, Annotations: map[string]string{revisionKey: strconv.Itoa(revision)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: d.Spec.Replicas, Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: *template},
	}
}

// replicate creates and deletes pods as the ReplicaSet requires. It adopts pods without an owner, and
// releases pods that the selector no longer matches.
func (w *workloads) replicate(ctx context.Context, key task) error {
	rs, err := w.replicaSets.ReplicaSets(key.namespace).Get(key.name)
	if err != nil || rs.DeletionTimestamp != nil {
		return err
	}
	all, err := w.pods.Pods(rs.Namespace).List(labels.Everything())
	if err != nil {
		return err
	}
	selector := labels.SelectorFromSet(rs.Spec.Selector.MatchLabels)
	taken, mine := map[string]bool{}, []*corev1.Pod{}
	status := appsv1.ReplicaSetStatus{ObservedGeneration: rs.Generation, TerminatingReplicas: rs.Status.TerminatingReplicas}
	for _, p := range all {
		taken[p.Name] = true
		owner, match := metav1.GetControllerOf(p), selector.Matches(labels.Set(p.Labels))
		switch {
		case p.DeletionTimestamp != nil, owner != nil && owner.UID != rs.UID, owner == nil && !match:
			continue
		case owner == nil:
			p = p.DeepCopy()
			p.OwnerReferences = append(p.OwnerReferences, *metav1.NewControllerRef(rs, appsv1.SchemeGroupVersion.WithKind("ReplicaSet")))
			_, err = w.set.CoreV1().Pods(p.Namespace).Update(ctx, p, metav1.UpdateOptions{})
		case !match:
			p = p.DeepCopy()
			p.OwnerReferences = nil
			_, err = w.set.CoreV1().Pods(p.Namespace).Update(ctx, p, metav1.UpdateOptions{})
		default:
			mine = append(mine, p)
			if status.Replicas++; p.Status.Phase == corev1.PodRunning {
				status.ReadyReplicas++
			}
		}
		if err != nil {
			return err
		}
		if owner == nil || !match {
			return nil // the event of the informer enqueues it again, and the rest is done then
		}
	}
	if err := w.resize(ctx, rs, mine, taken); err != nil {
		return err
	}
	if status.AvailableReplicas = status.ReadyReplicas; fmt.Sprint(status) == fmt.Sprint(rs.Status) {
		return nil
	}
	next := rs.DeepCopy()
	next.Status = status
	_, err = w.set.AppsV1().ReplicaSets(rs.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{})
	return err
}

// resize creates or deletes pods. Pod names are numbered, so that a stale informer does not lead to too
// many pods.
func (w *workloads) resize(ctx context.Context, rs *appsv1.ReplicaSet, mine []*corev1.Pod, taken map[string]bool) error {
	missing := int(*rs.Spec.Replicas) - len(mine)
	for n := 0; missing > 0; n++ {
		name := fmt.Sprintf("%s-%d", rs.Name, n)
		if taken[name] {
			continue
		}
		missing--
		_, err := w.set.CoreV1().Pods(rs.Namespace).Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Labels: rs.Spec.Template.Labels,
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(rs, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))},
			},
			Spec: rs.Spec.Template.Spec,
		}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	for ; missing < 0; missing++ {
		last := mine[len(mine)+missing]
		err := w.set.CoreV1().Pods(rs.Namespace).Delete(ctx, last.Name, *metav1.NewPreconditionDeleteOptions(string(last.UID)))
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
	return nil
}

// runPod sets the status of a new pod to running, as a kubelet would.
func (w *workloads) runPod(ctx context.Context, key task) error {
	p, err := w.pods.Pods(key.namespace).Get(key.name)
	if err != nil || p.Status.Phase == corev1.PodRunning || p.DeletionTimestamp != nil {
		return err
	}
	p = p.DeepCopy()
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	_, err = w.set.CoreV1().Pods(p.Namespace).UpdateStatus(ctx, p, metav1.UpdateOptions{})
	return err
}
