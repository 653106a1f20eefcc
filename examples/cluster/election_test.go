package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"orch.io/controlplane/examples/cluster/internal/testbed"
)

// candidacy makes the test binary a candidate of an election.
var candidacy = flag.String("candidate", "", "run as a candidate of TestElection with this name; the first argument is the kubeconfig")

const leasesPath = "/apis/coordination.k8s.io/v1/namespaces/default/leases"

// Parameters of the election.
const (
	termTime    = 15 * time.Second
	renewWithin = 10 * time.Second
	renewEvery  = 2 * time.Second
)

// beCandidate takes part in the election with client-go, prints each change of its state as a line, and
// releases the lease on SIGTERM.
func beCandidate(name, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.Timeout = renewWithin / 2 // as in the components of Kubernetes
	client, err := coordinationv1client.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var mu sync.Mutex
	state := ""
	report := func(next string) {
		mu.Lock()
		defer mu.Unlock()
		if state != next && (state != "" || next != "over") {
			state = next
			fmt.Printf("%s %s\n", next, name)
		}
	}
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	go func() {
		<-terminated
		report("over") // work under the lease must end before the lease is released
		cancel()
	}()
	for ctx.Err() == nil {
		leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta: metav1.ObjectMeta{Namespace: "default", Name: "election"}, Client: client,
				LockConfig: resourcelock.ResourceLockConfig{Identity: name},
			},
			LeaseDuration: termTime, RenewDeadline: renewWithin, RetryPeriod: renewEvery, ReleaseOnCancel: true, Name: "election",
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { report("leading") },
				OnStoppedLeading: func() { report("over") },
			},
		})
	}
	return nil
}

// election records the states that the candidates print, in order: they share a pipe.
type election struct {
	t          testing.TB
	candidates map[string]*exec.Cmd
	pipe       *os.File

	mu      sync.Mutex
	leading map[string]bool // guarded by mu: candidates that lead and can act
	over    map[string]bool // guarded by mu: candidates that led and no longer lead
	terms   []string        // guarded by mu: the leaders, in order
	news    chan struct{}
}

func startElection(t testing.TB) *election {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	e := &election{t: t, candidates: map[string]*exec.Cmd{}, pipe: w, leading: map[string]bool{}, over: map[string]bool{}, news: make(chan struct{}, 1)}
	var reading sync.WaitGroup
	reading.Go(func() {
		defer r.Close()
		for lines := bufio.NewScanner(r); lines.Scan(); {
			if state, name, ok := strings.Cut(lines.Text(), " "); ok {
				e.hear(state, name)
			}
		}
	})
	t.Cleanup(func() {
		for name := range e.candidates {
			e.end(name, syscall.SIGKILL)
		}
		_ = w.Close()
		reading.Wait()
	})
	return e
}

func (e *election) hear(state, name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch state {
	case "over":
		delete(e.leading, name)
		e.over[name] = true
	case "leading":
		for other := range e.leading {
			e.t.Errorf("%s leads while %s does", name, other)
		}
		e.leading[name] = true
		e.terms = append(e.terms, name)
	}
	select {
	case e.news <- struct{}{}:
	default:
	}
}

func (e *election) stand(name, kubeconfig string) {
	e.t.Helper()
	cmd := exec.Command(os.Args[0], "-candidate", name, kubeconfig)
	cmd.Stdout = e.pipe
	if runtime.GOOS == "linux" {
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	}
	require.NoError(e.t, cmd.Start())
	e.candidates[name] = cmd
}

// end stops a candidate with a signal and waits until it exits.
func (e *election) end(name string, how os.Signal) {
	_ = e.candidates[name].Process.Signal(how)
	_ = e.candidates[name].Wait()
	delete(e.candidates, name)
	e.setSilent(name)
}

// setSilent records that a candidate can no longer act.
func (e *election) setSilent(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.leading, name)
}

// leader waits until a candidate leads, and returns its name.
func (e *election) leader() (name string) {
	e.t.Helper()
	e.await(func() bool {
		for name = range e.leading {
		}
		return name != ""
	})
	return name
}

// await waits until a condition on the recorded states holds.
func (e *election) await(holds func() bool) {
	e.t.Helper()
	deadline := time.NewTimer(2 * time.Minute)
	defer deadline.Stop()
	for {
		e.mu.Lock()
		ok := holds()
		e.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-e.news:
		case <-deadline.C:
			require.FailNow(e.t, "condition not reached", "leaders: %v", e.led())
		}
	}
}

// led returns the leaders, in order.
func (e *election) led() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.terms)
}

// pause pauses a leader between two renewals. A candidate of client-go that is paused during a renewal
// may later release the lease of another holder.
func (e *election) pause(p *testbed.Server, name string) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), time.Minute)
	defer cancel()
	now := p.Must(200, "GET", leasesPath+"/election", "").Version()
	require.NoError(e.t, p.Watch(ctx, leasesPath, fmt.Sprintf("resourceVersion=%d", now), func(ev testbed.Event) bool {
		return ev.Type == "BOOKMARK" || ev.Object.Metadata.Name != "election" || ev.Object.Spec.HolderIdentity != name
	}))
	require.NoError(e.t, e.candidates[name].Process.Signal(syscall.SIGSTOP))
	e.setSilent(name)
}

// held asserts with the history of the lease that no candidate took it from a holder that had neither
// released it nor let it expire. It returns the number of releases.
func (e *election) held(p *testbed.Server, after uint64) (releases int) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), time.Minute)
	defer cancel()
	last := p.Must(200, "GET", leasesPath+"/election", "").Version()
	var holder string
	var renewed time.Time
	require.NoError(e.t, p.Watch(ctx, leasesPath, fmt.Sprintf("resourceVersion=%d", after), func(ev testbed.Event) bool {
		spec := ev.Object.Spec
		if ev.Type == "BOOKMARK" || ev.Object.Metadata.Name != "election" {
			return true
		}
		switch {
		case spec.HolderIdentity == "":
			releases++
		case holder != "" && spec.HolderIdentity != holder:
			require.GreaterOrEqual(e.t, spec.AcquireTime.Sub(renewed), termTime, "%s took the lease of %s", spec.HolderIdentity, holder)
		}
		holder, renewed = spec.HolderIdentity, spec.RenewTime
		return ev.Object.Version() < last
	}))
	return releases
}

// TestElection: several candidates use the leader election of client-go through the balancer, while
// servers are killed, and candidates are killed, paused and stopped. There are never two leaders at a
// time.
func TestElection(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes")
	}
	_, servers := testbed.StartCluster(t)
	b := testbed.NewBalancer(t, servers)
	began := servers[0].Must(200, "GET", testbed.ConfigMaps, "").Version()
	kubeconfig := b.Kubeconfig(filepath.Join(t.TempDir(), "kubeconfig"))
	e := startElection(t)
	for i := range 4 {
		e.stand(fmt.Sprint("candidate-", i), kubeconfig)
	}
	first := e.leader()
	for _, p := range servers {
		p.Kill()
		time.Sleep(2 * renewEvery) // the leader has renewed the lease, or tried to
		p.Restart()
	}
	require.Equal(t, first, e.leader(), "the leader is unchanged")
	require.Len(t, e.led(), 1)

	e.end(first, syscall.SIGTERM)
	released := time.Now()
	second := e.leader()
	t.Logf("new leader after %v", time.Since(released).Round(time.Millisecond))
	e.end(second, syscall.SIGKILL)
	third := e.leader()

	e.pause(servers[0], third)
	fourth := e.leader()
	require.NoError(t, e.candidates[third].Process.Signal(syscall.SIGCONT))
	e.await(func() bool { return e.over[third] }) // after the renew deadline
	require.Equal(t, fourth, e.leader(), "the paused candidate no longer leads")
	e.end(fourth, syscall.SIGTERM)
	require.Equal(t, third, e.leader())
	require.Equal(t, []string{first, second, third, fourth, third}, e.led())
	require.Equal(t, 2, e.held(servers[1], began))
}
