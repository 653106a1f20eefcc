package apiserver

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"orch.io/controlplane/server/serving"
)

// TestPublishedObjects: the server's Service and the configuration for verifying clients exist from the
// start, are created again when deleted, and are corrected when changed.
func TestPublishedObjects(t *testing.T) {
	t.Parallel()
	f := files{t, t.TempDir()}
	ca, err := serving.NewAuthority("ca")
	require.NoError(t, err)
	server := startServer(t, "--token-auth-file", f.put("users.csv", "admin-token,admin,1,system:masters\n"),
		"--client-ca-file", f.put("ca.pem", string(ca.PEM())), "--requestheader-client-ca-file", f.put("proxy.pem", string(ca.PEM())),
		"--requestheader-allowed-names", "front", "--requestheader-username-headers", "X-Who",
		"--service-cluster-ip-range", "10.7.0.0/16", "--enable-bootstrap-token-auth")
	get := func(path string) map[string]any {
		code, answer := ask(t, nil, "GET", server+path, "admin-token", "")
		require.Equal(t, 200, code, "%s: %v", path, answer)
		return answer
	}
	const service = "/api/v1/namespaces/default/services/kubernetes"
	const verify = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
	const info = "/api/v1/namespaces/kube-public/configmaps/cluster-info"
	spec := get(service)["spec"].(map[string]any)
	assert.Equal(t, "10.7.0.1", spec["clusterIP"])
	shown := certificate(t, server)
	for _, host := range []string{"10.7.0.1", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"} {
		assert.NoError(t, shown.VerifyHostname(host), "name by which pods reach the server")
	}
	assert.Equal(t, 443.0, spec["ports"].([]any)[0].(map[string]any)["port"])
	data := get(verify)["data"].(map[string]any)
	assert.Contains(t, data["client-ca-file"], string(ca.PEM()))
	assert.Equal(t, string(ca.PEM()), data["requestheader-client-ca-file"])
	assert.Equal(t, `["front"]`, data["requestheader-allowed-names"])
	for key, want := range map[string]string{"username-headers": "X-Remote-User", "uid-headers": "X-Remote-Uid", "group-headers": "X-Remote-Group", "extra-headers-prefix": "X-Remote-Extra-"} {
		assert.Equal(t, `["`+want+`"]`, data["requestheader-"+key], "the headers that this server sends, not those that it accepts from a proxy")
	}

	code, answer := ask(t, nil, "GET", server+info, "", "")
	require.Equal(t, 200, code, "anonymous users may read it: %v", answer)
	assert.Contains(t, answer["data"].(map[string]any)["kubeconfig"], "server: "+server)
	code, _ = ask(t, nil, "GET", server+"/api/v1/namespaces/kube-public/configmaps", "", "")
	assert.Equal(t, 403, code, "anonymous users may read nothing else")
	code, _ = ask(t, nil, "GET", server+verify, "", "")
	assert.Equal(t, 403, code)

	for _, path := range []string{service, verify, info} {
		uid := get(path)["metadata"].(map[string]any)["uid"]
		code, answer := ask(t, nil, "DELETE", server+path, "admin-token", "")
		require.Equal(t, 200, code, answer)
		require.Eventually(t, func() bool {
			code, answer := ask(t, nil, "GET", server+path, "admin-token", "")
			return code == 200 && answer["metadata"].(map[string]any)["uid"] != uid
		}, time.Minute, 10*time.Millisecond, path)
	}
	assert.Equal(t, "10.7.0.1", get(service)["spec"].(map[string]any)["clusterIP"])
	for path, patch := range map[string]string{
		verify:  `{"data":{"client-ca-file":"mine"}}`,
		service: `{"spec":{"ports":[{"name":"https","port":1}]}}`,
		info:    `{"data":{"kubeconfig":"the administrator's own"}}`,
	} {
		code, answer := ask(t, nil, "PATCH", server+path, "admin-token", patch, "Content-Type", "application/merge-patch+json")
		require.Equal(t, 200, code, answer)
	}
	require.Eventually(t, func() bool {
		port := get(service)["spec"].(map[string]any)["ports"].([]any)[0].(map[string]any)["port"]
		return port == 443.0 && get(verify)["data"].(map[string]any)["client-ca-file"] == data["client-ca-file"]
	}, time.Minute, 10*time.Millisecond)
	assert.Equal(t, "the administrator's own", get(info)["data"].(map[string]any)["kubeconfig"])
}

// TestReachableAddress: a server that listens on all addresses is advertised with an address that
// others can reach.
func TestReachableAddress(t *testing.T) {
	for _, c := range []struct {
		at, want string
		machine  []string
	}{
		{"10.1.1.1:5", "10.1.1.1:5", []string{"10.2.2.2/8"}},
		{"[fe80::1%eth0]:5", "[fe80::1%eth0]:5", nil},
		{"0.0.0.0:5", "10.2.2.2:5", []string{"127.0.0.1/8", "fd00::1/64", "10.2.2.2/8", "10.3.3.3/8"}},
		{"[::]:5", "[fd00::1]:5", []string{"127.0.0.1/8", "::1/128", "fe80::1/64", "fd00::1/64", "10.2.2.2/8"}},
		{"[::]:5", "10.2.2.2:5", []string{"10.2.2.2/8", "fd00::1/64"}},
		{"0.0.0.0:5", "127.0.0.1:5", []string{"127.0.0.1/8", "fd00::1/64"}},
		{"[::]:5", "[::1]:5", []string{"127.0.0.1/8", "fe80::1/64"}},
	} {
		got, err := reachableAddress(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(c.at)), func() (list []net.Addr, err error) {
			for _, m := range c.machine {
				ip, network, err := net.ParseCIDR(m)
				require.NoError(t, err)
				list = append(list, &net.IPNet{IP: ip, Mask: network.Mask})
			}
			return list, nil
		})
		require.NoError(t, err)
		assert.Equal(t, c.want, got.String(), c.at)
	}
}

// TestListeningOnAllAddresses: cluster-info contains an address at which the server answers, with a
// certificate for it by the authority in cluster-info. The server's Service has that address too, if
// others can reach it.
func TestListeningOnAllAddresses(t *testing.T) {
	t.Parallel()
	for _, bind := range []string{"0.0.0.0", "127.0.0.1"} {
		server := startServer(t, "--bind-address", bind, "--enable-bootstrap-token-auth",
			"--token-auth-file", files{t, t.TempDir()}.put("users.csv", "admin-token,admin,1,system:masters\n"))
		_, answer := ask(t, nil, "GET", server+"/api/v1/namespaces/kube-public/configmaps/cluster-info", "", "")
		var config struct {
			Clusters []struct {
				Cluster struct {
					Server string `json:"server"`
					CA     string `json:"certificate-authority-data"`
				} `json:"cluster"`
			} `json:"clusters"`
		}
		require.NoError(t, yaml.Unmarshal([]byte(answer["data"].(map[string]any)["kubeconfig"].(string)), &config))
		cluster := config.Clusters[0].Cluster
		where, err := url.Parse(cluster.Server)
		require.NoError(t, err)
		assert.False(t, netip.MustParseAddr(where.Hostname()).IsUnspecified(), where)
		if netip.MustParseAddr(where.Hostname()).IsLoopback() {
			code, answer := ask(t, nil, "GET", server+ownEndpoints, "admin-token", "")
			assert.Equal(t, 404, code, answer)
		} else {
			waitForEndpoint(t, server, where.Hostname())
		}
		ca, err := base64.StdEncoding.DecodeString(cluster.CA)
		require.NoError(t, err)
		pool := x509.NewCertPool()
		require.True(t, pool.AppendCertsFromPEM(ca))
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
		res, err := client.Get(cluster.Server + "/livez")
		require.NoError(t, err)
		res.Body.Close()
		client.CloseIdleConnections()
	}
}

const ownEndpoints = "/api/v1/namespaces/default/endpoints/kubernetes"

// waitForEndpoint waits until the controllers have set the endpoint of the server's Service to an
// address.
func waitForEndpoint(t *testing.T, server, address string) {
	t.Helper()
	require.Eventually(t, func() bool {
		code, answer := ask(t, nil, "GET", server+ownEndpoints, "admin-token", "")
		return code == 200 && strings.Contains(fmt.Sprint(answer["subsets"]), address)
	}, time.Minute, 10*time.Millisecond)
}

// TestAdvertisedAddress: the Service of a server that listens only on loopback has the address of
// --advertise-address.
func TestAdvertisedAddress(t *testing.T) {
	t.Parallel()
	server := startServer(t, "--advertise-address", "192.0.2.7", "--token-auth-file", files{t, t.TempDir()}.put("users.csv", "admin-token,admin,1,system:masters\n"))
	waitForEndpoint(t, server, "192.0.2.7")
	_, err := Command{}.parseFlags([]string{"--advertise-address", "example.com"})
	assert.ErrorContains(t, err, "advertise-address")
}

// certificate returns the certificate of a server.
func certificate(t *testing.T, address string) *x509.Certificate {
	conn, err := tls.Dial("tcp", strings.TrimPrefix(address, "https://"), &tls.Config{InsecureSkipVerify: true})
	require.NoError(t, err)
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0]
}
