package core

import "orch.io/controlplane/api/meta"

// Probe finds out how a container is.
type Probe struct {
	// ProbeHandler is what is done; exactly one is set.
	ProbeHandler `json:",inline" protobuf:"1"`

	// InitialDelaySeconds is how long after the start the first one comes.
	InitialDelaySeconds int32 `json:"initialDelaySeconds,omitempty" protobuf:"2" schema:"min=0"`

	// TimeoutSeconds is how long one may take; 1 by default.
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty" protobuf:"3" schema:"default=1,min=0"`

	// PeriodSeconds is how long from one to the next; 10 by default.
	PeriodSeconds int32 `json:"periodSeconds,omitempty" protobuf:"4" schema:"default=10,min=0"`

	// SuccessThreshold is how many must succeed in a row; 1 by default, and for
	// liveness and startup always.
	SuccessThreshold int32 `json:"successThreshold,omitempty" protobuf:"5" schema:"default=1,min=0"`

	// FailureThreshold is how many must fail in a row; 3 by default.
	FailureThreshold int32 `json:"failureThreshold,omitempty" protobuf:"6" schema:"default=3,min=0"`

	// TerminationGracePeriodSeconds replaces the pod's when this probe ends the
	// container.
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty" protobuf:"7" schema:"exclusiveMin=0"`
}

// ProbeHandler is what a probe does.
type ProbeHandler struct {
	// Exec runs a command in the container; exit code 0 is success.
	Exec *ExecAction `json:"exec,omitempty" protobuf:"1"`

	// HTTPGet makes a request; 200 to 399 is success.
	HTTPGet *HTTPGetAction `json:"httpGet,omitempty" protobuf:"2"`

	// TCPSocket opens a connection.
	TCPSocket *TCPSocketAction `json:"tcpSocket,omitempty" protobuf:"3"`

	// GRPC asks the gRPC health service.
	GRPC *GRPCAction `json:"grpc,omitempty" protobuf:"4"`
}

// ExecAction runs a command in the container, without a shell.
type ExecAction struct {
	// Command and its arguments.
	Command []string `json:"command,omitempty" protobuf:"1" schema:"required,optional,listType=atomic"`
}

// HTTPGetAction makes an HTTP request.
type HTTPGetAction struct {
	// Path of the request; / by default.
	Path string `json:"path,omitempty" protobuf:"1" schema:"default=/"`

	// Port, by number or by name.
	Port meta.IntOrString `json:"port" protobuf:"2" schema:"format=port"`

	// Host to connect to; the pod's address by default.
	Host string `json:"host,omitempty" protobuf:"3"`

	// Scheme is HTTP (the default) or HTTPS.
	Scheme string `json:"scheme,omitempty" protobuf:"4" schema:"default=HTTP,enum=HTTP|HTTPS"`

	// HTTPHeaders of the request.
	HTTPHeaders []HTTPHeader `json:"httpHeaders,omitempty" protobuf:"5" schema:"listType=atomic"`

	// Protocol is HTTP1 (what is used without it) or HTTP2, which needs the scheme HTTP.
	Protocol *string `json:"protocol,omitempty" protobuf:"6" schema:"enum=HTTP1|HTTP2,gate=H2CContainerProbe"`
}

// HTTPHeader is a header of a request.
type HTTPHeader struct {
	// Name of the header.
	Name string `json:"name" protobuf:"1"`

	// Value of the header.
	Value string `json:"value" protobuf:"2"`
}

// TCPSocketAction opens a TCP connection.
type TCPSocketAction struct {
	// Port, by number or by name.
	Port meta.IntOrString `json:"port" protobuf:"1" schema:"format=port"`

	// Host to connect to; the pod's address by default.
	Host string `json:"host,omitempty" protobuf:"2"`
}

// GRPCAction asks the gRPC health service.
type GRPCAction struct {
	// Port of the service.
	Port int32 `json:"port" protobuf:"1" schema:"range=1|65535"`

	// Service that is asked about; "" by default.
	Service *string `json:"service" protobuf:"2" schema:"optional,default="`

	// Mode is Plaintext (what is used without it), or TLS, where any certificate will do.
	Mode *string `json:"mode,omitempty" protobuf:"3" schema:"enum=Plaintext|TLS,gate=GRPCContainerProbeTLS"`
}

// Lifecycle are actions at moments of a container's life.
type Lifecycle struct {
	// PostStart runs right after the start; if it fails, the container is ended.
	PostStart *LifecycleHandler `json:"postStart,omitempty" protobuf:"1"`

	// PreStop runs before the container is ended on purpose; the grace period
	// goes on meanwhile.
	PreStop *LifecycleHandler `json:"preStop,omitempty" protobuf:"2"`

	// StopSignal is the signal to end with; it needs the pod's os.
	StopSignal *string `json:"stopSignal,omitempty" protobuf:"3" schema:"gate=ContainerStopSignals"`
}

// LifecycleHandler is an action; exactly one is set.
type LifecycleHandler struct {
	// Exec runs a command in the container.
	Exec *ExecAction `json:"exec,omitempty" protobuf:"1"`

	// HTTPGet makes a request.
	HTTPGet *HTTPGetAction `json:"httpGet,omitempty" protobuf:"2"`

	// TCPSocket is accepted and does nothing.
	TCPSocket *TCPSocketAction `json:"tcpSocket,omitempty" protobuf:"3"`

	// Sleep waits.
	Sleep *SleepAction `json:"sleep,omitempty" protobuf:"4"`
}

// SleepAction waits.
type SleepAction struct {
	// Seconds to wait.
	Seconds int64 `json:"seconds" protobuf:"1"`
}
