package core

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
)

// PodLogOptions are the query parameters of a request for the log of a container.
type PodLogOptions struct {
	meta.TypeMeta `json:",inline"`

	// Container is the name of the container. It may be omitted if the pod has a single container.
	Container string `json:"container,omitempty" protobuf:"1"`

	// Follow streams new lines until the request is cancelled.
	Follow bool `json:"follow,omitempty" protobuf:"2"`

	// Previous returns the log of the previous instance of the container.
	Previous bool `json:"previous,omitempty" protobuf:"3"`

	// SinceSeconds omits lines that are older than this number of seconds. It excludes sinceTime.
	SinceSeconds *int64 `json:"sinceSeconds,omitempty" protobuf:"4"`

	// SinceTime omits lines that are older than this time. It excludes sinceSeconds.
	SinceTime *meta.Time `json:"sinceTime,omitempty" protobuf:"5"`

	// Timestamps adds the time to the beginning of each line.
	Timestamps bool `json:"timestamps,omitempty" protobuf:"6"`

	// TailLines is the number of lines at the end of the log to return; default all.
	TailLines *int64 `json:"tailLines,omitempty" protobuf:"7"`

	// LimitBytes is the number of bytes after which the log is cut; default no limit.
	LimitBytes *int64 `json:"limitBytes,omitempty" protobuf:"8"`

	// InsecureSkipTLSVerifyBackend disables the verification of the kubelet's certificate.
	InsecureSkipTLSVerifyBackend bool `json:"insecureSkipTLSVerifyBackend,omitempty" protobuf:"9"`

	// Stream is not supported and must be unset.
	Stream *string `json:"stream,omitempty" protobuf:"10"`
}

// PodExecOptions are the query parameters of a request to run a command in a container.
type PodExecOptions struct {
	meta.TypeMeta `json:",inline"`

	// Stdin redirects the standard input.
	Stdin bool `json:"stdin,omitempty" protobuf:"1"`

	// Stdout redirects the standard output.
	Stdout bool `json:"stdout,omitempty" protobuf:"2"`

	// Stderr redirects the standard error output.
	Stderr bool `json:"stderr,omitempty" protobuf:"3"`

	// TTY allocates a terminal for the command.
	TTY bool `json:"tty,omitempty" protobuf:"4"`

	// Container is the name of the container. It may be omitted if the pod has a single container.
	Container string `json:"container,omitempty" protobuf:"5"`

	// Command is the program and its arguments. It is not run in a shell.
	Command []string `json:"command" protobuf:"6" schema:"optional,listType=atomic"`
}

// PodAttachOptions are the query parameters of a request to attach to a running container.
type PodAttachOptions struct {
	meta.TypeMeta `json:",inline"`

	// Stdin redirects the standard input.
	Stdin bool `json:"stdin,omitempty" protobuf:"1"`

	// Stdout redirects the standard output.
	Stdout bool `json:"stdout,omitempty" protobuf:"2"`

	// Stderr redirects the standard error output.
	Stderr bool `json:"stderr,omitempty" protobuf:"3"`

	// TTY declares that the container has a terminal.
	TTY bool `json:"tty,omitempty" protobuf:"4"`

	// Container is the name of the container. It may be omitted if the pod has a single container.
	Container string `json:"container,omitempty" protobuf:"5"`
}

// PodPortForwardOptions are the query parameters of a request to forward ports of a pod.
type PodPortForwardOptions struct {
	meta.TypeMeta `json:",inline"`

	// Ports to forward. Required for WebSocket connections.
	Ports []int32 `json:"ports,omitempty" protobuf:"1" schema:"listType=atomic"`
}

// PodProxyOptions are the query parameters of a proxy request to a pod.
type PodProxyOptions struct {
	meta.TypeMeta `json:",inline"`

	// Path of the request.
	Path string `json:"path,omitempty" protobuf:"1"`
}

// ServiceProxyOptions are the query parameters of a proxy request to a service.
type ServiceProxyOptions struct {
	meta.TypeMeta `json:",inline"`

	// Path of the request.
	Path string `json:"path,omitempty" protobuf:"1"`
}

// NodeProxyOptions are the query parameters of a proxy request to a kubelet.
type NodeProxyOptions struct {
	meta.TypeMeta `json:",inline"`

	// Path of the request.
	Path string `json:"path,omitempty" protobuf:"1"`
}

var (
	podResource  = meta.GroupResource{Resource: "pods"}
	nodeResource = meta.GroupResource{Resource: "nodes"}
)

// connecting returns a subresource that connects the client to a target, with options of type Options.
func connecting[Options any](name string, style registry.ConnectStyle, validate func(*registry.Change[Options]),
	target func(context.Context, *registry.Call) (*registry.Target, error)) registry.Subresource {
	return registry.Subresource{Name: name, Body: registry.Of(registry.Definition[Options]{Version: version, Validate: validate}),
		Connect: &registry.Connection{Style: style, Target: target}}
}

// podConnections returns the subresources of pods that connect to the kubelet of the pod's node.
func podConnections() []registry.Subresource {
	return []registry.Subresource{
		connecting("log", registry.Reads, validateLog, logTarget),
		connecting[PodExecOptions]("exec", registry.Streams, nil, func(ctx context.Context, call *registry.Call) (*registry.Target, error) {
			query := streamQuery(call.Object)
			query["command"] = call.Object.Strings("command")
			return containerTarget(ctx, call, "/exec/", query)
		}),
		connecting[PodAttachOptions]("attach", registry.Streams, nil, func(ctx context.Context, call *registry.Call) (*registry.Target, error) {
			return containerTarget(ctx, call, "/attach/", streamQuery(call.Object))
		}),
		connecting[PodPortForwardOptions]("portforward", registry.Streams, nil, forwardTarget),
	}
}

func validateLog(w *registry.Change[PodLogOptions]) {
	o := w.New
	if o.TailLines != nil && *o.TailLines < 0 {
		w.Invalid(check.At("tailLines"), *o.TailLines, "must be greater than or equal to 0")
	}
	positive := func(field string, n *int64) {
		if n != nil && *n < 1 {
			w.Invalid(check.At(field), *n, "must be greater than 0")
		}
	}
	positive("limitBytes", o.LimitBytes)
	if o.SinceSeconds != nil && o.SinceTime != nil {
		w.Forbidden(check.At("[]"), "at most one of `sinceTime` or `sinceSeconds` may be specified")
	} else {
		positive("sinceSeconds", o.SinceSeconds)
	}
	if o.Stream != nil {
		w.Forbidden(check.At("stream"), "may not be specified")
	}
}

func logTarget(ctx context.Context, call *registry.Call) (*registry.Target, error) {
	pod, container, err := callContainer(ctx, call)
	if err != nil || pod.String("spec", "nodeName") == "" { // a pod without a node has no log yet
		return nil, err
	}
	query, o := url.Values{}, call.Object
	for _, flag := range []string{"follow", "previous", "timestamps"} {
		if o.Bool(flag) {
			query.Set(flag, "true")
		}
	}
	for _, number := range []string{"sinceSeconds", "tailLines", "limitBytes"} {
		if _, ok := o.Get(number); ok {
			query.Set(number, strconv.FormatInt(o.Int(number), 10))
		}
	}
	if since := o.String("sinceTime"); since != "" {
		query.Set("sinceTime", since)
	}
	t, err := agentTarget(ctx, call, pod, podPath("/containerLogs/", pod)+"/"+container, query)
	if err == nil {
		t.InsecureSkipVerify = o.Bool("insecureSkipTLSVerifyBackend")
	}
	return t, err
}

// streamQuery returns the stream parameters in the form of the kubelet's API.
func streamQuery(o *meta.Object) url.Values {
	query := url.Values{}
	for field, parameter := range map[string]string{"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"} {
		if o.Bool(field) {
			query.Set(parameter, "1")
		}
	}
	return query
}

// containerTarget returns the URL for a container at the kubelet of its node.
func containerTarget(ctx context.Context, call *registry.Call, path string, query url.Values) (*registry.Target, error) {
	pod, container, err := callContainer(ctx, call)
	if err != nil {
		return nil, err
	}
	return agentTarget(ctx, call, pod, podPath(path, pod)+"/"+container, query)
}

func forwardTarget(ctx context.Context, call *registry.Call) (*registry.Target, error) {
	pod, err := call.Client.Get(ctx, podResource, call.Key)
	if err != nil {
		return nil, err
	}
	query := url.Values{}
	var ports []string
	for _, port := range call.Object.List("ports") {
		ports = append(ports, fmt.Sprint(port))
	}
	if ports != nil {
		query.Set("port", strings.Join(ports, ","))
	}
	return agentTarget(ctx, call, pod, podPath("/portForward/", pod), query)
}

func podPath(prefix string, pod *meta.Object) string {
	return prefix + pod.Namespace() + "/" + pod.Name()
}

// agentTarget returns the URL for path at the kubelet of the pod's node.
func agentTarget(ctx context.Context, call *registry.Call, pod *meta.Object, path string, query url.Values) (*registry.Target, error) {
	name := pod.String("spec", "nodeName")
	if name == "" {
		return nil, meta.BadRequest("pod %s does not have a host assigned", pod.Name())
	}
	node, err := call.Client.Get(ctx, nodeResource, meta.Key{Name: name})
	if errors.Is(err, &meta.Status{Reason: meta.ReasonNotFound}) {
		return nil, meta.NotFound(podResource, name) // kube-apiserver names the resource pods, although the node is missing
	}
	if err != nil {
		return nil, err
	}
	return &registry.Target{Node: node, URL: url.URL{Path: path, RawQuery: query.Encode()}}, nil
}

// callContainer returns the pod of a call and the name of the requested container.
func callContainer(ctx context.Context, call *registry.Call) (pod *meta.Object, container string, err error) {
	if pod, err = call.Client.Get(ctx, podResource, call.Key); err != nil {
		return nil, "", err
	}
	var all []string
	for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
		for _, c := range pod.Objects("spec", list) {
			all = append(all, c.String("name"))
		}
	}
	container = call.Object.String("container")
	if container == "" {
		if containers := pod.Objects("spec", "containers"); len(containers) == 1 {
			return pod, containers[0].String("name"), nil
		}
		return nil, "", meta.BadRequest("a container name must be specified for pod %s, choose one of: %s", pod.Name(), all)
	}
	for _, name := range all {
		if name == container {
			return pod, container, nil
		}
	}
	return nil, "", meta.BadRequest("container %s is not valid for pod %s", container, pod.Name())
}
