package core

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/meta"
)

func podColumns() []registry.Column {
	return []registry.Column{
		{Name: "Ready", Type: "string", Doc: "How many of the containers are ready.", Cell: func(o *meta.Object) any {
			ready, total := readyContainers(o)
			return fmt.Sprintf("%d/%d", ready, total)
		}},
		{Name: "Status", Type: "string", Doc: "The state in a word.", Cell: func(o *meta.Object) any { return podState(o) }},
		{Name: "Restarts", Type: "string", Doc: "How often containers were restarted, and when last.", Cell: podRestarts},
		registry.Age(),
		textOrNone("IP", "The pod's address.", "status", "podIP"),
		textOrNone("Node", "The node that the pod is bound to.", "spec", "nodeName"),
		textOrNone("Nominated Node", "The node that the pod may get.", "status", "nominatedNodeName"),
		{Name: "Readiness Gates", Type: "string", Doc: "How many further conditions hold.", Priority: 1, Cell: podGates},
	}
}

// textOrNone is a wide column that shows a text, <none> if there is none.
func textOrNone(name, doc string, path ...string) registry.Column {
	return registry.Column{Name: name, Type: "string", Doc: doc, Priority: 1, Cell: func(o *meta.Object) any {
		if s := o.String(path...); s != "" {
			return s
		}
		return "<none>"
	}}
}

// statuses returns the states of some containers.
func statuses(o *meta.Object, list string) []*meta.Object {
	var out []*meta.Object
	for _, v := range o.List("status", list) {
		if m, ok := v.(map[string]any); ok {
			out = append(out, meta.NewObject(m))
		}
	}
	return out
}

func readyContainers(o *meta.Object) (ready, total int) {
	total = len(o.List("spec", "containers"))
	sidecars := map[string]bool{}
	for _, c := range containersOf(o.Map("spec"), "initContainers") {
		if c["restartPolicy"] == "Always" {
			name, _ := c["name"].(string)
			sidecars[name] = true
			total++
		}
	}
	for _, s := range statuses(o, "containerStatuses") {
		if s.Bool("ready") {
			ready++
		}
	}
	for _, s := range statuses(o, "initContainerStatuses") {
		if sidecars[s.String("name")] && s.Bool("ready") {
			ready++
		}
	}
	return ready, total
}

// podState returns the most telling word about a pod.
func podState(o *meta.Object) string {
	if o.Terminating() {
		if o.String("status", "reason") == "NodeLost" {
			return "Unknown"
		}
		return "Terminating"
	}
	state := o.String("status", "phase")
	if r := o.String("status", "reason"); r != "" {
		state = r
	}
	if gated(o) {
		state = "SchedulingGated"
	}
	inits := statuses(o, "initContainerStatuses")
	for i, s := range inits {
		if word := containerState(s, true); word != "" {
			if word == "PodInitializing" {
				word = fmt.Sprintf("%d/%d", i, len(o.List("spec", "initContainers")))
			}
			return "Init:" + word
		}
	}
	running := false
	for _, s := range statuses(o, "containerStatuses") {
		if word := containerState(s, false); word != "" {
			state = word
		} else if s.Bool("ready") {
			running = true
		}
	}
	if state == "Completed" && running {
		return "Running"
	}
	return state
}

func gated(o *meta.Object) bool {
	for _, v := range o.List("status", "conditions") {
		m, _ := v.(map[string]any)
		if m["type"] == "PodScheduled" && m["reason"] == "SchedulingGated" {
			return true
		}
	}
	return false
}

// containerState returns why a container does not run, "" if it does (or, for
// an init container, is through).
func containerState(s *meta.Object, init bool) string {
	if s.Map("state", "waiting") != nil {
		if r := s.String("state", "waiting", "reason"); r != "" {
			return r
		}
		return map[bool]string{true: "PodInitializing", false: ""}[init]
	}
	if s.Map("state", "terminated") == nil {
		if init && !s.Bool("started") {
			return "PodInitializing"
		}
		return ""
	}
	code := s.Int("state", "terminated", "exitCode")
	if init && code == 0 {
		return ""
	}
	if r := s.String("state", "terminated", "reason"); r != "" {
		return r
	}
	if n := s.Int("state", "terminated", "signal"); n != 0 {
		return "Signal:" + strconv.FormatInt(n, 10)
	}
	return "ExitCode:" + strconv.FormatInt(code, 10)
}

func podRestarts(o *meta.Object) any {
	n, last := int64(0), time.Time{}
	for _, s := range statuses(o, "containerStatuses") {
		n += s.Int("restartCount")
		if t := s.Time("lastState", "terminated", "finishedAt"); t.After(last) {
			last = t
		}
	}
	if n == 0 || last.IsZero() {
		return strconv.FormatInt(n, 10)
	}
	return fmt.Sprintf("%d (%s ago)", n, meta.FormatAge(last, time.Now()))
}

func podGates(o *meta.Object) any {
	gates := o.List("spec", "readinessGates")
	if len(gates) == 0 {
		return "<none>"
	}
	holds := map[string]bool{}
	for _, v := range o.List("status", "conditions") {
		m, _ := v.(map[string]any)
		name, _ := m["type"].(string)
		holds[name] = m["status"] == "True"
	}
	n := 0
	for _, v := range gates {
		m, _ := v.(map[string]any)
		if name, _ := m["conditionType"].(string); holds[name] {
			n++
		}
	}
	return fmt.Sprintf("%d/%d", n, len(gates))
}

// ContainerNames returns the names and images of the containers of a spec, for
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
