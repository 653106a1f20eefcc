package etcdtest

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// size is the number of members of a new cluster.
const size = 3

// Cluster is an etcd cluster. The traffic between members goes through HTTP proxies, one for each
// member, which alone know the addresses of the other members. The traffic of clients to Endpoints goes
// through TCP proxies.
type Cluster struct {
	// Members are the processes, by number.
	Members []*Member
	// Endpoints are the client addresses of the members, without a scheme. CutClients makes them
	// unreachable; the Endpoint of a Member always stays reachable.
	Endpoints []string

	t       testing.TB
	flags   []string
	clients []*gate

	mu    sync.Mutex
	hosts map[string]host
	away  []bool // by number: isolated from the others
	gone  []int  // numbers of the members that have left
	gates map[[2]int]*gate
}

// host is the address at which a member listens for the other members.
type host struct {
	number int
	listen string
}

// StartCluster starts three members with additional flags, and waits until they serve. See Start about
// flags and the disk.
func StartCluster(t testing.TB, flags ...string) *Cluster {
	t.Helper()
	c := &Cluster{t: t, flags: flags, hosts: map[string]host{}, gates: map[[2]int]*gate{}}
	var initial []string
	for i := range size {
		initial = append(initial, fmt.Sprintf("m%d=%s", i, c.add()))
	}
	for _, m := range c.Members {
		m.args = append(m.args, "--initial-cluster", strings.Join(initial, ","))
		m.start()
	}
	for _, m := range c.Members {
		m.Ready()
	}
	return c
}

// add creates a member and returns its peer URL. The caller must append the flag --initial-cluster and
// start the member.
func (c *Cluster) add() (peer string) {
	i, listen := len(c.Members), reserve(c.t)
	name := fmt.Sprintf("m%d.cluster.test:2380", i)
	c.mu.Lock()
	c.hosts[name] = host{i, listen}
	c.away = append(c.away, false)
	c.mu.Unlock()
	peer = "http://" + name
	m := newMember(c.t, fmt.Sprint("m", i), reserve(c.t), c.flags...)
	m.args = append(m.args, "--listen-peer-urls", "http://"+listen, "--initial-advertise-peer-urls", peer)
	m.env = []string{"HTTP_PROXY=" + c.proxy(i), "NO_PROXY="}
	g := newGate()
	c.Members, c.clients = append(c.Members, m), append(c.clients, g)
	c.Endpoints = append(c.Endpoints, forward(c.t, g, m.Endpoint))
	return peer
}

// proxy starts the HTTP proxy through which a member reaches the others, and returns its URL.
func (c *Cluster) proxy(from int) (address string) {
	transport := &http.Transport{}
	proxy := &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			to, _ := c.host(r.In.Host)
			r.SetURL(&url.URL{Scheme: "http", Host: to.listen})
		},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to, known := c.host(r.Host)
		if !known {
			http.Error(w, "no such member", http.StatusBadGateway)
			return
		}
		ctx, done := c.gate(from, to.number).pass(r.Context())
		defer done()
		proxy.ServeHTTP(w, r.WithContext(ctx))
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	c.t.Cleanup(func() {
		for to := range c.Members {
			c.gate(from, to).close()
		}
		server.CloseClientConnections()
		server.Close()
		transport.CloseIdleConnections()
	})
	return server.URL
}

func (c *Cluster) host(name string) (host, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h, known := c.hosts[name]
	return h, known
}

// gate returns the gate between two members.
func (c *Cluster) gate(from, to int) *gate {
	c.mu.Lock()
	defer c.mu.Unlock()
	way := [2]int{from, to}
	if c.gates[way] == nil {
		c.gates[way] = newGate()
		if c.away[from] || c.away[to] {
			c.gates[way].close()
		}
	}
	return c.gates[way]
}

// Isolate cuts a member off from all other members. Clients still reach it.
func (c *Cluster) Isolate(i int) { c.isolate(i, true) }

// Rejoin connects a member with the other members again, except those that are isolated themselves.
func (c *Cluster) Rejoin(i int) { c.isolate(i, false) }

func (c *Cluster) isolate(i int, away bool) {
	c.mu.Lock()
	c.away[i] = away
	c.mu.Unlock()
	for j := range c.Members {
		for _, g := range []*gate{c.gate(i, j), c.gate(j, i)} {
			if away || c.isolated(j) {
				g.close()
			} else {
				g.open()
			}
		}
	}
}

func (c *Cluster) isolated(i int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.away[i]
}

// CutClients cuts a member off from the clients that use its address in Endpoints.
func (c *Cluster) CutClients(i int) { c.clients[i].close() }

// JoinClients lets clients reach the member through Endpoints again.
func (c *Cluster) JoinClients(i int) { c.clients[i].open() }
