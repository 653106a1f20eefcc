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

// PodLogOptions are what is asked of the log of a container.
type PodLogOptions struct {
	meta.TypeMeta `json:",inline"`

	// Container whose log it is; it can be left out if the pod has one only.
	Container string `json:"container,omitempty" protobuf:"1"`

	// Follow goes on with what is written from now on.
	Follow bool `json:"follow,omitempty" protobuf:"2"`

	// Previous is the log of the container before it was started anew.
	Previous bool `json:"previous,omitempty" protobuf:"3"`

	// SinceSeconds leaves out what is older.
	SinceSeconds *int64 `json:"sinceSeconds,omitempty" protobuf:"4"`

	// SinceTime leaves out what was written before. Not with sinceSeconds.
	SinceTime *meta.Time `json:"sinceTime,omitempty" protobuf:"5"`

	// Timestamps begin each line with its time.
	Timestamps bool `json:"timestamps,omitempty" protobuf:"6"`

	// TailLines is how many of the last lines there are; all by default.
	TailLines *int64 `json:"tailLines,omitempty" protobuf:"7"`

	// LimitBytes is after how many bytes the log ends.
	LimitBytes *int64 `json:"limitBytes,omitempty" protobuf:"8"`

	// InsecureSkipTLSVerifyBackend does not check who the node is that tells the log.
	InsecureSkipTLSVerifyBackend bool `json:"insecureSkipTLSVerifyBackend,omitempty" protobuf:"9"`

	// Stream is which output of the container it is. It cannot be chosen.
	Stream *string `json:"stream,omitempty" protobuf:"10"`
}

// PodExecOptions are a command to be run in a container, and its streams.
type PodExecOptions struct {
	meta.TypeMeta `json:",inline"`

	// Stdin connects the standard input.
	Stdin bool `json:"stdin,omitempty" protobuf:"1"`

	// Stdout connects the standard output.
	Stdout bool `json:"stdout,omitempty" protobuf:"2"`

	// Stderr connects the standard error output.
	Stderr bool `json:"stderr,omitempty" protobuf:"3"`

	// TTY gives the command a terminal.
	TTY bool `json:"tty,omitempty" protobuf:"4"`

	// Container in which it runs; it can be left out if the pod has one only.
	Container string `json:"container,omitempty" protobuf:"5"`

	// Command is the program and its arguments; there is no shell around it.
	Command []string `json:"command" protobuf:"6" schema:"optional,listType=atomic"`
}

// PodAttachOptions are the streams of what runs in a container.
type PodAttachOptions struct {
	meta.TypeMeta `json:",inline"`

	// Stdin connects the standard input.
	Stdin bool `json:"stdin,omitempty" protobuf:"1"`

	// Stdout connects the standard output.
	Stdout bool `json:"stdout,omitempty" protobuf:"2"`

	// Stderr connects the standard error output.
	Stderr bool `json:"stderr,omitempty" protobuf:"3"`

	// TTY tells that the container has a terminal.
	TTY bool `json:"tty,omitempty" protobuf:"4"`

	// Container that is attached to; it can be left out if the pod has one only.
	Container string `json:"container,omitempty" protobuf:"5"`
}

// PodPortForwardOptions are ports of a pod.
type PodPortForwardOptions struct {
	meta.TypeMeta `json:",inline"`

	// Ports that are forwarded; needed with a WebSocket.
	Ports []int32 `json:"ports,omitempty" protobuf:"1" schema:"listType=atomic"`
}

// PodProxyOptions are a request to a pod.
type PodProxyOptions struct {
	meta.TypeMeta `json:",inline"`

	// Path of the request.
	Path string `json:"path,omitempty" protobuf:"1"`
}

// ServiceProxyOptions are a request to a service.
type ServiceProxyOptions struct {
	meta.TypeMeta `json:",inline"`

	// Path of the request.
	Path string `json:"path,omitempty" protobuf:"1"`
}

// NodeProxyOptions are a request to the agent of a node.
type NodeProxyOptions struct {
	meta.TypeMeta `json:",inline"`

	// Path of the request.
	Path string `json:"path,omitempty" protobuf:"1"`
}

var (
	podResource  = meta.GroupResource{Resource: "pods"}
	nodeResource = meta.GroupResource{Resource: "nodes"}
)

// connecting declares a sub-resource that connects, with options of a type.
func connecting[Options any](name string, style registry.ConnectStyle, validate func(*registry.Change[Options]),
	target func(context.Context, *registry.Call) (*registry.Target, error)) registry.Subresource {
	return registry.Subresource{Name: name, Body: registry.Of(registry.Definition[Options]{Version: version, Validate: validate}),
		Connect: &registry.Connection{Style: style, Target: target}}
}

// podConnections are those that lead to the agent of a pod's node.
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
	if err != nil || pod.String("spec", "nodeName") == "" { // what does not run yet has said nothing
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
		t.Unverified = o.Bool("insecureSkipTLSVerifyBackend")
	}
	return t, err
}

// streamQuery is how agents are asked for the streams of a command.
func streamQuery(o *meta.Object) url.Values {
	query := url.Values{}
	for field, parameter := range map[string]string{"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"} {
		if o.Bool(field) {
			query.Set(parameter, "1")
		}
	}
	return query
}

// containerTarget is the agent of a pod, asked for one of its containers.
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

// agentTarget is the agent of a pod's node.
func agentTarget(ctx context.Context, call *registry.Call, pod *meta.Object, path string, query url.Values) (*registry.Target, error) {
	name := pod.String("spec", "nodeName")
	if name == "" {
		return nil, meta.BadRequest("pod %s does not have a host assigned", pod.Name())
	}
	node, err := call.Client.Get(ctx, nodeResource, meta.Key{Name: name})
	if errors.Is(err, &meta.Status{Reason: meta.ReasonNotFound}) {
		return nil, meta.NotFound(podResource, name) // as clients know it, though it is the node
	}
	if err != nil {
		return nil, err
	}
	return &registry.Target{Node: node, URL: url.URL{Path: path, RawQuery: query.Encode()}}, nil
}

// callContainer returns the pod of a call, and which of its containers is meant.
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
		if own := pod.Objects("spec", "containers"); len(own) == 1 {
			return pod, own[0].String("name"), nil
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
