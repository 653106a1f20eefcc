package core

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
)

// Cells without a value.
const (
	none    = "<none>"
	unknown = "<unknown>"
)

func podColumns() []registry.Column {
	return []registry.Column{
		{Name: "Ready", Type: "string", Doc: "The ready containers and the number of containers.", Cell: func(o *meta.Object) any {
			v := viewPod(o)
			return fmt.Sprintf("%d/%d", v.ready, v.total)
		}},
		{Name: "Status", Type: "string", Doc: "The state of the pod.", Cell: func(o *meta.Object) any { return viewPod(o).state }},
		{Name: "Restarts", Type: "string", Doc: "The number of restarts, and the time since the last restart.", Cell: podRestarts},
		registry.AgeColumn(),
		{Name: "IP", Type: "string", Doc: "The IP address of the pod.", Priority: 1, Cell: podAddress},
		textOrNone("Node", "The node of the pod.", "spec", "nodeName"),
		textOrNone("Nominated Node", "The node on which room is being made for the pod.", "status", "nominatedNodeName"),
		{Name: "Readiness Gates", Type: "string", Doc: "The readiness gates that are True, and their number.", Priority: 1, Cell: podGates},
	}
}

// textOrNone returns a wide column that shows the text at path, or <none>.
func textOrNone(name, doc string, path ...string) registry.Column {
	return registry.Column{Name: name, Type: "string", Doc: doc, Priority: 1, Cell: func(o *meta.Object) any {
		if s := o.String(path...); s != "" {
			return s
		}
		return none
	}}
}

// podView is the summary of a pod that its row shows.
type podView struct {
	ready, total int
	state        string // the most significant state
	restarts     int64
	last         time.Time // time of the last restart, or zero
}

// viewPod summarizes the containers of a pod: until the initialization ends only the init containers,
// then the sidecars and the containers.
func viewPod(o *meta.Object) podView {
	v := podView{state: o.String("status", "phase"), total: len(o.List("spec", "containers"))}
	if r := o.String("status", "reason"); r != "" {
		v.state = r
	}
	if c := condition(o, "PodScheduled"); c.String("reason") == "SchedulingGated" {
		v.state = "SchedulingGated"
	}
	if waiting := v.addInitContainers(o); !waiting || condition(o, "Initialized").String("status") == "True" {
		v.addContainers(o)
	}
	switch phase := o.String("status", "phase"); {
	case !o.Terminating():
	case o.String("status", "reason") == "NodeLost":
		v.state = "Unknown"
	case phase != "Succeeded" && phase != "Failed":
		v.state = "Terminating"
	}
	return v
}

// addInitContainers adds the init containers, and reports whether the initialization is still in progress. Restarts
// of init containers other than sidecars count only until it ends.
func (v *podView) addInitContainers(o *meta.Object) (waiting bool) {
	sidecars := map[string]bool{}
	inits := containersOf(o.Map("spec"), "initContainers")
	for _, c := range inits {
		if name, _ := c["name"].(string); c["restartPolicy"] == "Always" {
			sidecars[name] = true
			v.total++
		}
	}
	var sidecarView podView
	for i, s := range statuses(o, "initContainerStatuses") {
		v.addRestarts(s)
		sidecar := sidecars[s.String("name")]
		if sidecar {
			sidecarView.addRestarts(s)
		}
		ended := s.Map("state", "terminated") != nil
		reason := s.String("state", "waiting", "reason")
		switch {
		case ended && s.Int("state", "terminated", "exitCode") == 0:
			continue
		case sidecar && s.Bool("started"):
			if s.Bool("ready") {
				v.ready++
			}
			continue
		case ended:
			v.state = "Init:" + terminationReason(s)
		case reason != "" && reason != "PodInitializing":
			v.state = "Init:" + reason
		default:
			v.state = fmt.Sprintf("Init:%d/%d", i, len(inits))
		}
		waiting = true
		break
	}
	if !waiting || condition(o, "Initialized").String("status") == "True" {
		v.restarts, v.last = sidecarView.restarts, sidecarView.last
	}
	return waiting
}

// addContainers adds the containers. If several are not running, the first decides the state.
func (v *podView) addContainers(o *meta.Object) {
	running := false
	for _, s := range slices.Backward(statuses(o, "containerStatuses")) {
		v.addRestarts(s)
		switch reason := s.String("state", "waiting", "reason"); {
		case reason != "":
			v.state = reason
		case s.Map("state", "terminated") != nil:
			v.state = terminationReason(s)
		case s.Bool("ready") && s.Map("state", "running") != nil:
			running = true
			v.ready++
		}
	}
	if v.state == "Completed" && running {
		v.state = "NotReady"
		if condition(o, "Ready").String("status") == "True" {
			v.state = "Running"
		}
	}
}

// addRestarts adds the restarts of a container.
func (v *podView) addRestarts(s *meta.Object) {
	v.restarts += s.Int("restartCount")
	if t := s.Time("lastState", "terminated", "finishedAt"); t.After(v.last) {
		v.last = t
	}
}

// statuses returns the container statuses in a list of the status.
func statuses(o *meta.Object, list string) []*meta.Object {
	var out []*meta.Object
	for _, v := range o.List("status", list) {
		if m, ok := v.(map[string]any); ok {
			out = append(out, meta.NewObject(m))
		}
	}
	return out
}

// condition returns the condition of the given type, or an empty object.
func condition(o *meta.Object, kind string) *meta.Object {
	for _, v := range o.List("status", "conditions") {
		if m, ok := v.(map[string]any); ok && m["type"] == kind {
			return meta.NewObject(m)
		}
	}
	return meta.NewObject(nil)
}

// terminationReason returns the reason of a termination: the reason, the signal or the exit code.
func terminationReason(s *meta.Object) string {
	if r := s.String("state", "terminated", "reason"); r != "" {
		return r
	}
	if n := s.Int("state", "terminated", "signal"); n != 0 {
		return "Signal:" + strconv.FormatInt(n, 10)
	}
	return "ExitCode:" + strconv.FormatInt(s.Int("state", "terminated", "exitCode"), 10)
}

func podRestarts(o *meta.Object) any {
	v := viewPod(o)
	if v.restarts == 0 || v.last.IsZero() {
		return strconv.FormatInt(v.restarts, 10)
	}
	return fmt.Sprintf("%d (%s ago)", v.restarts, meta.FormatAge(v.last, time.Now()))
}

// podAddress shows the first IP address of the pod.
func podAddress(o *meta.Object) any {
	if ip := firstIP(o.List("status", "podIPs")); ip != "" {
		return ip
	}
	return none
}

func podGates(o *meta.Object) any {
	gates := o.List("spec", "readinessGates")
	if len(gates) == 0 {
		return none
	}
	n := 0
	for _, v := range gates {
		m, _ := v.(map[string]any)
		name, _ := m["conditionType"].(string)
		if condition(o, name).String("status") == "True" {
			n++
		}
	}
	return fmt.Sprintf("%d/%d", n, len(gates))
}

// ContainerNames returns the names and the images of the containers of a pod spec, joined for printer
// columns.
func ContainerNames(spec map[string]any) (names, images string) {
	var a, b []string
	for _, c := range containersOf(spec, "containers") {
		name, _ := c["name"].(string)
		image, _ := c["image"].(string)
		a, b = append(a, name), append(b, image)
	}
	return strings.Join(a, ","), strings.Join(b, ",")
}
