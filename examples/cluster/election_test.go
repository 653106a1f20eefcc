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
)

// candidacy makes the test program a candidate of an election.
var candidacy = flag.String("candidate", "", "be a candidate of TestElection, under this name, with the kubeconfig that is the first argument")

const leasesPath = "/apis/coordination.k8s.io/v1/namespaces/default/leases"

// Times of the election.
const (
	termTime    = 15 * time.Second
	renewWithin = 10 * time.Second
	renewEvery  = 2 * time.Second
)

// beCandidate takes part in the election as client-go does it, says what becomes of it, a line at
// a time, and gives the lease up at SIGTERM.
func beCandidate(name, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.Timeout = renewWithin / 2 // as the field's components have it
	client, err := coordinationv1client.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var mu sync.Mutex
	state := ""
	say := func(next string) {
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
		say("over") // what the lease guards ends before it is given up
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
				OnStartedLeading: func(context.Context) { say("leading") },
				OnStoppedLeading: func() { say("over") },
			},
		})
	}
	return nil
}

// election is what the candidates say, in the order in which they say it: they share a pipe.
type election struct {
	t          testing.TB
	candidates map[string]*exec.Cmd
	pipe       *os.File

	mu      sync.Mutex
	leading map[string]bool // of those that can do anything
	over    map[string]bool // who led and does no more
	terms   []string        // who led, one after the other
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

// end ends a candidate and waits for that.
func (e *election) end(name string, how os.Signal) {
	_ = e.candidates[name].Process.Signal(how)
	_ = e.candidates[name].Wait()
	delete(e.candidates, name)
	e.silence(name)
}

// silence notes that a candidate can do nothing any more.
func (e *election) silence(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.leading, name)
}

// leader waits until somebody leads, and returns who.
func (e *election) leader() (name string) {
	e.t.Helper()
	e.await(func() bool {
		for name = range e.leading {
		}
		return name != ""
	})
	return name
}

// await waits until something holds of what was heard.
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
			require.FailNow(e.t, "it does not come", "%v led", e.led())
		}
	}
}

// led returns who led, one after the other.
func (e *election) led() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.terms)
}

// pause stops a leader between two renewals. One of client-go that is stopped in the middle of one
// may give up, when it goes on, the lease of whoever holds it then.
func (e *election) pause(p *process, name string) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), time.Minute)
	defer cancel()
	now := p.mustCall(200, "GET", leasesPath+"/election", "").version()
	require.NoError(e.t, p.followAt(ctx, leasesPath, fmt.Sprintf("resourceVersion=%d", now), func(ev event) bool {
		return ev.Type == "BOOKMARK" || ev.Object.Metadata.Name != "election" || ev.Object.Spec.HolderIdentity != name
	}))
	require.NoError(e.t, e.candidates[name].Process.Signal(syscall.SIGSTOP))
	e.silence(name)
}

// held asserts by the records of the lease that nobody took it from a holder that had neither
// given it up nor let it run out. It returns how often it was given up.
func (e *election) held(p *process, after uint64) (releases int) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), time.Minute)
	defer cancel()
	last := p.mustCall(200, "GET", leasesPath+"/election", "").version()
	var holder string
	var renewed time.Time
	require.NoError(e.t, p.followAt(ctx, leasesPath, fmt.Sprintf("resourceVersion=%d", after), func(ev event) bool {
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
		return ev.Object.version() < last
	}))
	return releases
}

// TestElection: client-go elects one of several candidates through the balancer, while servers are
// killed and candidates are killed, stand still and end. There are never two leaders at a time.
func TestElection(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes minutes")
	}
	_, servers := three(t)
	b := balance(t, servers)
	began := servers[0].mustCall(200, "GET", mapsPath, "").version()
	kubeconfig := b.kubeconfig(filepath.Join(t.TempDir(), "kubeconfig"))
	e := startElection(t)
	for i := range 4 {
		e.stand(fmt.Sprint("candidate-", i), kubeconfig)
	}
	first := e.leader()
	for _, p := range servers {
		p.kill()
		time.Sleep(2 * renewEvery) // the leader has renewed, or has tried
		p.restart()
	}
	require.Equal(t, first, e.leader(), "the one that leads goes on")
	require.Len(t, e.led(), 1)

	e.end(first, syscall.SIGTERM)
	released := time.Now()
	second := e.leader()
	t.Logf("handed over after %v", time.Since(released).Round(time.Millisecond))
	e.end(second, syscall.SIGKILL)
	third := e.leader()

	e.pause(servers[0], third)
	fourth := e.leader()
	require.NoError(t, e.candidates[third].Process.Signal(syscall.SIGCONT))
	e.await(func() bool { return e.over[third] }) // after the time to renew
	require.Equal(t, fourth, e.leader(), "the one that stood still leads no more")
	e.end(fourth, syscall.SIGTERM)
	require.Equal(t, third, e.leader())
	require.Equal(t, []string{first, second, third, fourth, third}, e.led())
	require.Equal(t, 2, e.held(servers[1], began))
}
