package clients

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	spdyclient "k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"orch.io/controlplane/server"
	"orch.io/controlplane/server/nodeagent"
	"orch.io/controlplane/server/servertest"
)

// successStatus is the message of a kubelet on the error stream after a successful command.
const successStatus = `{"metadata":{},"status":"Success"}`

// nodeAgent is a fake kubelet. Its commands answer their input in capitals, and it forwards every port
// to an echo server. It uses SPDY, or WebSocket if sockets is set.
type nodeAgent struct{ sockets bool }

func (a nodeAgent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/healthz":
		fmt.Fprint(w, successStatus)
	case strings.HasPrefix(r.URL.Path, "/containerLogs/"):
		fmt.Fprintf(w, "log of %s\n", r.URL.Path)
	case r.Header.Get("Upgrade") == "websocket" && a.sockets:
		a.socket(w, r)
	case r.Header.Get("Upgrade") == "websocket":
		http.Error(w, "no WebSocket here", http.StatusForbidden)
	case strings.HasPrefix(r.URL.Path, "/portForward/"):
		a.forward(w, r)
	default:
		a.command(w, r)
	}
}

// socket runs a command over a WebSocket. The first byte of a message is the number of the stream.
func (a nodeAgent) socket(w http.ResponseWriter, r *http.Request) {
	up := websocket.Upgrader{Subprotocols: []string{"v5.channel.k8s.io"}, CheckOrigin: func(*http.Request) bool { return true }}
	conn, err := up.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer conn.Close()
	var input bytes.Buffer
	for r.URL.Query().Get("input") == "1" {
		_, message, err := conn.ReadMessage()
		if err != nil {
			return
		}
		if message[0] == 255 { // the message closes a stream
			break
		}
		input.Write(message[1:])
	}
	say := func(stream byte, text string) {
		_ = conn.WriteMessage(websocket.BinaryMessage, append([]byte{stream}, text...))
	}
	say(1, strings.ToUpper(input.String()))
	say(2, strings.Join(r.URL.Query()["command"], " "))
	say(3, successStatus)
	_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(time.Second))
	_, _, _ = conn.ReadMessage()
}

// streams upgrades the connection to SPDY, and returns the streams of the peer as they arrive.
func (a nodeAgent) streams(w http.ResponseWriter, r *http.Request, protocol string) (httpstream.Connection, <-chan httpstream.Stream) {
	if _, err := httpstream.Handshake(r, w, []string{protocol}); err != nil {
		return nil, nil
	}
	streams := make(chan httpstream.Stream, 10)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
		streams <- s
		return nil
	})
	return conn, streams
}

func (a nodeAgent) command(w http.ResponseWriter, r *http.Request) {
	conn, streams := a.streams(w, r, "v4.channel.k8s.io")
	if conn == nil {
		return
	}
	defer conn.Close()
	byType := map[string]httpstream.Stream{}
	want := 1 // the error stream
	for _, p := range []string{"input", "output", "error"} {
		if r.URL.Query().Get(p) == "1" {
			want++
		}
	}
	for len(byType) < want {
		select {
		case s := <-streams:
			byType[s.Headers().Get(corev1.StreamType)] = s
		case <-conn.CloseChan():
			return
		}
	}
	text := []byte("attached")
	if in := byType["stdin"]; in != nil {
		text, _ = io.ReadAll(in)
	}
	fmt.Fprint(byType["stdout"], strings.ToUpper(string(text)))
	_ = byType["stdout"].Close()
	if e := byType["stderr"]; e != nil {
		fmt.Fprint(e, strings.Join(r.URL.Query()["command"], " "))
		_ = e.Close()
	}
	fmt.Fprint(byType["error"], successStatus)
	_ = byType["error"].Close()
	<-conn.CloseChan()
}

func (a nodeAgent) forward(w http.ResponseWriter, r *http.Request) {
	conn, streams := a.streams(w, r, "portforward.k8s.io")
	if conn == nil {
		return
	}
	defer conn.Close()
	for {
		select {
		case s := <-streams:
			if s.Headers().Get(corev1.StreamType) == corev1.StreamTypeData {
				go func() {
					defer s.Close()
					_, _ = io.Copy(s, s)
				}()
			} else {
				_ = s.Close()
			}
		case <-conn.CloseChan():
			return
		}
	}
}

// withAgent returns a server with a pod on a node that has a kubelet.
func withAgent(t *testing.T, a nodeAgent) (*servertest.Server, *rest.Config) {
	web := httptest.NewUnstartedServer(a)
	web.StartTLS()
	roots := web.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	s := servertest.New(t, func(b *server.Builder) {
		b.Connector = nodeagent.New(nodeagent.Config{TLS: &tls.Config{RootCAs: roots}, Loopback: true})
	})
	t.Cleanup(web.Close)
	config := overTLS(t, s)
	c := kubernetes.NewForConfigOrDie(config)
	_, port, err := net.SplitHostPort(web.Listener.Addr().String())
	require.NoError(t, err)
	number, err := strconv.ParseInt(port, 10, 32)
	require.NoError(t, err)
	ctx := t.Context()
	node, err := c.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(number)
	_, err = c.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
	require.NoError(t, err)
	pod, err := c.CoreV1().Pods("default").Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "main", Image: "i"}}}}, metav1.CreateOptions{})
	require.NoError(t, err)
	pod.Status.Phase = corev1.PodRunning
	_, err = c.CoreV1().Pods("default").UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	require.NoError(t, err)
	return s, config
}

// request returns the URL that an executor requests.
func request(config *rest.Config, subresource string, options *corev1.PodExecOptions) *url.URL {
	return kubernetes.NewForConfigOrDie(config).CoreV1().RESTClient().Post().Resource("pods").Namespace("default").Name("web").
		SubResource(subresource).VersionedParams(options, scheme.ParameterCodec).URL()
}

// TestExec: the executors of client-go run a command with either protocol, and fall back to the other
// protocol if the kubelet does not support the first.
func TestExec(t *testing.T) {
	for name, a := range map[string]nodeAgent{"SPDY only": {}, "WebSocket": {sockets: true}} {
		t.Run(name, func(t *testing.T) {
			_, config := withAgent(t, a)
			at := request(config, "exec", &corev1.PodExecOptions{Command: []string{"tr", "a-z", "A-Z"}, Stdin: true, Stdout: true, Stderr: true})
			bySPDY, err := remotecommand.NewSPDYExecutor(config, "POST", at)
			require.NoError(t, err)
			bySocket, err := remotecommand.NewWebSocketExecutor(config, "GET", at.String())
			require.NoError(t, err)
			either, err := remotecommand.NewFallbackExecutor(bySocket, bySPDY, httpstream.IsUpgradeFailure)
			require.NoError(t, err)
			for _, e := range []remotecommand.Executor{bySPDY, either} {
				var out, failed bytes.Buffer
				require.NoError(t, e.StreamWithContext(patience(t), remotecommand.StreamOptions{Stdin: strings.NewReader("hello"), Stdout: &out, Stderr: &failed}))
				require.Equal(t, "HELLO", out.String())
				require.Equal(t, "tr a-z A-Z", failed.String())
			}
			err = bySocket.StreamWithContext(patience(t), remotecommand.StreamOptions{Stdin: strings.NewReader("x"), Stdout: io.Discard, Stderr: io.Discard})
			require.Equal(t, a.sockets, err == nil, "%v", err)
		})
	}
}

func TestAttachAndLog(t *testing.T) {
	_, config := withAgent(t, nodeAgent{})
	e, err := remotecommand.NewSPDYExecutor(config, "POST", request(config, "attach", &corev1.PodExecOptions{Stdout: true}))
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, e.StreamWithContext(patience(t), remotecommand.StreamOptions{Stdout: &out}))
	require.Equal(t, "ATTACHED", out.String())

	text, err := kubernetes.NewForConfigOrDie(config).CoreV1().Pods("default").GetLogs("web", &corev1.PodLogOptions{}).DoRaw(t.Context())
	require.NoError(t, err)
	require.Equal(t, "log of /containerLogs/default/web/main\n", string(text))
}

func TestPortForward(t *testing.T) {
	_, config := withAgent(t, nodeAgent{})
	carrier, upgrader, err := spdyclient.RoundTripperFor(config)
	require.NoError(t, err)
	at := request(config, "portforward", &corev1.PodExecOptions{})
	at.RawQuery = ""
	stop, ready := make(chan struct{}), make(chan struct{})
	f, err := portforward.New(spdyclient.NewDialer(upgrader, &http.Client{Transport: carrier}, "POST", at), []string{":80"}, stop, ready, io.Discard, io.Discard)
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- f.ForwardPorts() }()
	ctx, cancel := context.WithCancel(patience(t))
	defer cancel()
	select {
	case <-ready:
	case err := <-done:
		t.Fatal(err)
	case <-ctx.Done():
		t.Fatal("no port is forwarded")
	}
	ports, err := f.GetPorts()
	require.NoError(t, err)
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", ports[0].Local))
	require.NoError(t, err)
	fmt.Fprint(conn, "hello")
	require.NoError(t, conn.(*net.TCPConn).CloseWrite())
	text, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Equal(t, "hello", string(text))
	conn.Close()
	close(stop)
	require.NoError(t, <-done)
}
