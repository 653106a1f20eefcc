package core

import "orch.io/controlplane/api/meta"

// Probe checks a container periodically.
type Probe struct {
	// ProbeHandler is the check. Exactly 1 field must be set.
	ProbeHandler `json:",inline" protobuf:"1"`

	// InitialDelaySeconds is the number of seconds between the start of the container and the first
	// check; default 0.
	InitialDelaySeconds int32 `json:"initialDelaySeconds,omitempty" protobuf:"2" schema:"min=0"`

	// TimeoutSeconds is the timeout of a check; default 1.
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty" protobuf:"3" schema:"default=1,min=0"`

	// PeriodSeconds is the number of seconds between checks; default 10.
	PeriodSeconds int32 `json:"periodSeconds,omitempty" protobuf:"4" schema:"default=10,min=0"`

	// SuccessThreshold is the number of consecutive successes after a failure; default 1. It must be 1
	// for liveness and startup probes.
	SuccessThreshold int32 `json:"successThreshold,omitempty" protobuf:"5" schema:"default=1,min=0"`

	// FailureThreshold is the number of consecutive failures; default 3.
	FailureThreshold int32 `json:"failureThreshold,omitempty" protobuf:"6" schema:"default=3,min=0"`

	// TerminationGracePeriodSeconds overrides the pod's value if the probe terminates the container.
	// Not for readiness probes.
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty" protobuf:"7" schema:"exclusiveMin=0"`
}

// ProbeHandler is the check of a probe. Exactly 1 field must be set.
type ProbeHandler struct {
	// Exec runs a command in the container; exit code 0 is a success.
	Exec *ExecAction `json:"exec,omitempty" protobuf:"1"`

	// HTTPGet sends a request; status 200 to 399 is a success.
	HTTPGet *HTTPGetAction `json:"httpGet,omitempty" protobuf:"2"`

	// TCPSocket opens a connection; that it opens is a success.
	TCPSocket *TCPSocketAction `json:"tcpSocket,omitempty" protobuf:"3"`

	// GRPC calls the gRPC health service.
	GRPC *GRPCAction `json:"grpc,omitempty" protobuf:"4"`
}

// ExecAction runs a command in the container. It is not run in a shell.
type ExecAction struct {
	// Command and its arguments.
	Command []string `json:"command,omitempty" protobuf:"1" schema:"required,optional,listType=atomic"`
}

// HTTPGetAction sends an HTTP GET request.
type HTTPGetAction struct {
	// Path of the request; default /.
	Path string `json:"path,omitempty" protobuf:"1" schema:"default=/"`

	// Port by number or name.
	Port meta.IntOrString `json:"port" protobuf:"2" schema:"format=port"`

	// Host to connect to; default the IP address of the pod.
	Host string `json:"host,omitempty" protobuf:"3"`

	// Scheme is HTTP (the default) or HTTPS.
	Scheme string `json:"scheme,omitempty" protobuf:"4" schema:"default=HTTP,enum=HTTP|HTTPS"`

	// HTTPHeaders of the request.
	HTTPHeaders []HTTPHeader `json:"httpHeaders,omitempty" protobuf:"5" schema:"listType=atomic"`

	// Protocol is HTTP1 (default) or HTTP2, which requires the scheme HTTP.
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
	// Port by number or name.
	Port meta.IntOrString `json:"port" protobuf:"1" schema:"format=port"`

	// Host to connect to; default the IP address of the pod.
	Host string `json:"host,omitempty" protobuf:"2"`
}

// GRPCAction calls the gRPC health service.
type GRPCAction struct {
	// Port of the service: 1 to 65535.
	Port int32 `json:"port" protobuf:"1" schema:"range=1|65535"`

	// Service is the service name in the health request; default "".
	Service *string `json:"service" protobuf:"2" schema:"optional,default="`

	// Mode is Plaintext (default), or TLS without verification of the certificate.
	Mode *string `json:"mode,omitempty" protobuf:"3" schema:"enum=Plaintext|TLS,gate=GRPCContainerProbeTLS"`
}

// Lifecycle are actions at events in the life of a container.
type Lifecycle struct {
	// PostStart runs after the start; if it fails, the container is terminated.
	PostStart *LifecycleHandler `json:"postStart,omitempty" protobuf:"1"`

	// PreStop runs before the termination. It counts towards the grace period.
	PreStop *LifecycleHandler `json:"preStop,omitempty" protobuf:"2"`

	// StopSignal is the signal that terminates the container. It requires the os of the pod.
	StopSignal *string `json:"stopSignal,omitempty" protobuf:"3" schema:"gate=ContainerStopSignals"`
}

// LifecycleHandler is an action. Exactly 1 field must be set.
type LifecycleHandler struct {
	// Exec runs a command in the container.
	Exec *ExecAction `json:"exec,omitempty" protobuf:"1"`

	// HTTPGet sends a request.
	HTTPGet *HTTPGetAction `json:"httpGet,omitempty" protobuf:"2"`

	// TCPSocket is accepted and ignored. Deprecated.
	TCPSocket *TCPSocketAction `json:"tcpSocket,omitempty" protobuf:"3"`

	// Sleep waits.
	Sleep *SleepAction `json:"sleep,omitempty" protobuf:"4"`
}

// SleepAction waits.
type SleepAction struct {
	// Seconds to wait, at most terminationGracePeriodSeconds.
	Seconds int64 `json:"seconds" protobuf:"1"`
}
