package core

import (
	"slices"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
)

// statusFaults returns the violations of a write of the status.
func (p *Pod) statusFaults(old *Pod) []meta.StatusCause {
	var f check.Violations
	at, s, before := check.At("status"), &p.Status, &old.Status
	for i, c := range s.Conditions {
		if !slices.Contains([]string{"PodScheduled", "Ready", "Initialized"}, c.Type) {
			// kube-apiserver writes the field with a capital
			f.Format(at.Field("conditions").Index(i).Field("Type"), c.Type, meta.CheckQualifiedName(c.Type))
		}
	}
	if s.NominatedNodeName != before.NominatedNodeName {
		f.Subdomain(at.Field("nominatedNodeName"), s.NominatedNodeName)
		if old.Spec.NodeName != "" && s.NominatedNodeName != "" {
			f.Forbidden(at.Field("nominatedNodeName"), "may not be set on pods that are already bound to a node")
		}
	}
	f.Unchanged(at.Field("qosClass"), s.QOSClass, before.QOSClass)
	restart := old.Spec.RestartPolicy
	stayTerminated(&f, at.Field("containerStatuses"), s.ContainerStatuses, before.ContainerStatuses, restart, nil)
	stayTerminated(&f, at.Field("initContainerStatuses"), s.InitContainerStatuses, before.InitContainerStatuses, restart, old.Spec.InitContainers)
	stayTerminated(&f, at.Field("ephemeralContainerStatuses"), s.EphemeralContainerStatuses, before.EphemeralContainerStatuses, "Never", nil)
	s.claimFaults(&f, at.Field("resourceClaimStatuses"), old.Spec.ResourceClaims)
	var pods, hosts []string
	for _, ip := range s.PodIPs {
		pods = append(pods, ip.IP)
	}
	for _, ip := range s.HostIPs {
		hosts = append(hosts, ip.IP)
	}
	addresses(&f, at.Field("podIPs"), pods)
	if len(hosts) > 0 && hosts[0] != s.HostIP {
		f.Invalid(at.Field("hostIPs").Index(0).Field("ip"), hosts[0], "must be equal to `hostIP`")
	}
	addresses(&f, at.Field("hostIPs"), hosts)
	return f
}

// stayTerminated checks that containers that will not be restarted stay terminated. Sidecars among
// inits are exempt.
func stayTerminated(f *check.Violations, at *check.Path, now, before []ContainerStatus, restart string, inits []Container) {
	if restart == "Always" {
		return
	}
	for i, old := range before {
		end := old.State.Terminated
		if end == nil || end.ExitCode != 0 && restart == "OnFailure" {
			continue
		}
		sidecar := slices.ContainsFunc(inits, func(c Container) bool {
			return c.Name == old.Name && c.RestartPolicy != nil && *c.RestartPolicy == "Always"
		})
		for _, s := range now {
			if !sidecar && s.Name == old.Name && s.State.Terminated == nil {
				f.Forbidden(at.Index(i).Field("state"), "may not be transitioned to non-terminated state")
			}
		}
	}
}

func (s *PodStatus) claimFaults(f *check.Violations, at *check.Path, claims []PodResourceClaim) {
	seen := map[string]bool{}
	for i, c := range s.ResourceClaimStatuses {
		p := at.Index(i).Field("name")
		if !slices.ContainsFunc(claims, func(have PodResourceClaim) bool { return have.Name == c.Name }) {
			f.Invalid(p, c.Name, "must match the name of an entry in `spec.resourceClaims`")
		}
		if seen[c.Name] {
			f.Duplicate(p, c.Name)
		}
		seen[c.Name] = true
		if c.ResourceClaimName != nil {
			f.Format(p, *c.ResourceClaimName, meta.CheckDNSSubdomain(*c.ResourceClaimName))
		}
	}
}

// addresses checks the IP addresses of a pod or a node: at most 1 of each family.
func addresses(f *check.Violations, at *check.Path, list []string) {
	for i, ip := range list {
		f.Format(at.Index(i), ip, check.IP(ip))
	}
	if len(list) > 2 || len(list) == 2 && !dualStack(list) {
		f.Invalid(at, list, "may specify no more than one IP for each IP family")
	}
	f.Unique(at, list)
}
