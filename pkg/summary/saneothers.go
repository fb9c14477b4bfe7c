package summary

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
)

const (
	// mostPoints is how many ingress points of an object a cluster may tell, mostPorts how many ports of one.
	mostPoints, mostPorts = 64, 64
	// mostBytes is the largest size of a volume that counts, 1 EiB.
	mostBytes = 1 << 60
)

// saneService leaves out points where the Service does not ask for a load balancer, and those that are no addresses.
func saneService(in, out *corev1.Service, d *doubts) {
	s := &out.Status
	if in.Spec.Type != corev1.ServiceTypeLoadBalancer && len(s.LoadBalancer.Ingress) > 0 {
		d.add("loadBalancer: the Service is not of type LoadBalancer")
		s.LoadBalancer.Ingress = nil
	}
	s.LoadBalancer.Ingress = points(d, s.LoadBalancer.Ingress, func(p corev1.LoadBalancerIngress) bool {
		mode := p.IPMode == nil || p.IP != "" && (*p.IPMode == corev1.LoadBalancerIPModeVIP || *p.IPMode == corev1.LoadBalancerIPModeProxy)
		return mode && address(p.IP, p.Hostname) && len(p.Ports) <= mostPorts && !slices.ContainsFunc(p.Ports, func(port corev1.PortStatus) bool {
			return !portStatus(port.Port, port.Protocol, port.Error)
		})
	})
	s.Conditions = conditionsOfReport(d, out.CreationTimestamp, s.Conditions,
		func(c metav1.Condition) condition {
			return condition{c.Type, corev1.ConditionStatus(c.Status), c.Reason, c.Message, [2]metav1.Time{c.LastTransitionTime}}
		},
		func(c *metav1.Condition, to condition) {
			c.Reason, c.Message, c.LastTransitionTime = to.reason, to.message, to.times[0]
		})
}

func saneIngress(_, out *networkingv1.Ingress, d *doubts) {
	s := &out.Status
	s.LoadBalancer.Ingress = points(d, s.LoadBalancer.Ingress, func(p networkingv1.IngressLoadBalancerIngress) bool {
		return address(p.IP, p.Hostname) && len(p.Ports) <= mostPorts &&
			!slices.ContainsFunc(p.Ports, func(port networkingv1.IngressPortStatus) bool {
				return !portStatus(port.Port, port.Protocol, port.Error)
			})
	})
}

// points returns the ingress points of a list that can be, and the list itself if all can.
func points[P any](d *doubts, list []P, can func(P) bool) []P {
	if len(list) <= mostPoints && !slices.ContainsFunc(list, func(p P) bool { return !can(p) }) {
		return list
	}
	var out []P
	for _, p := range list {
		if len(out) < mostPoints && can(p) {
			out = append(out, p)
		}
	}
	d.add("loadBalancer: of %d ingress points, only %d have usable addresses", len(list), len(out))
	return out
}

// address reports whether a point has an address, and only such.
func address(ip, hostname string) bool {
	if ip != "" {
		// As it is printed, or it would be another one for some who read it.
		parsed, err := netip.ParseAddr(ip)
		if err != nil || parsed.Zone() != "" || parsed.Is4In6() || parsed.String() != ip || !reachable(parsed) {
			return false
		}
	}
	if hostname != "" {
		if _, err := netip.ParseAddr(hostname); err == nil || len(validation.IsDNS1123Subdomain(hostname)) > 0 || dotted(hostname) {
			return false
		}
	}
	return ip != "" || hostname != ""
}

// reachable reports whether somebody elsewhere can be sent to an address. That of the link is where clouds have metadata and credentials, for whoever is
// sent there. The loopback may be one: tools for clusters on a developer's own machine publish it.
func reachable(a netip.Addr) bool {
	return !a.IsUnspecified() && !a.IsMulticast() && !a.IsLinkLocalUnicast()
}

// dotted tells of a name that some who read it take for an IPv4 address, though it is not one as it is printed.
func dotted(hostname string) bool {
	digits, dots := 0, 0
	for _, r := range hostname {
		switch {
		case r == '.':
			dots++
		case r >= '0' && r <= '9':
			digits++
		}
	}
	return dots == 3 && digits+dots == len(hostname)
}

func portStatus(port int32, protocol corev1.Protocol, failed *string) bool {
	switch protocol {
	case corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP:
	default:
		return false
	}
	return len(validation.IsValidPortNum(int(port))) == 0 && (failed == nil || len(validation.IsQualifiedName(*failed)) == 0)
}

func saneClaim(_, out *corev1.PersistentVolumeClaim, d *doubts) {
	if name := out.Spec.VolumeName; name != "" && len(validation.IsDNS1123Subdomain(name)) > 0 {
		d.add("volumeName is not the name of a volume")
		out.Spec.VolumeName = ""
	}
	s := &out.Status
	switch s.Phase {
	case "", corev1.ClaimPending, corev1.ClaimBound, corev1.ClaimLost:
	default:
		d.add("phase %.20q is none", s.Phase)
		s.Phase = corev1.ClaimPending
	}
	s.AccessModes = accessModes(d, s.AccessModes)
	s.Capacity = sizes(d, "capacity", s.Capacity)
	s.AllocatedResources = sizes(d, "allocatedResources", s.AllocatedResources)
	s.AllocatedResourceStatuses = resizes(d, s.AllocatedResourceStatuses)
	if name := ptr.Deref(s.CurrentVolumeAttributesClassName, ""); name != "" && len(validation.IsDNS1123Subdomain(name)) > 0 {
		d.add("currentVolumeAttributesClassName is not a name")
		s.CurrentVolumeAttributesClassName = nil
	}
	if m := s.ModifyVolumeStatus; m != nil && !modification(*m) {
		d.add("modifyVolumeStatus is none")
		s.ModifyVolumeStatus = nil
	}
	s.Conditions = conditionsOfReport(d, out.CreationTimestamp, s.Conditions,
		func(c corev1.PersistentVolumeClaimCondition) condition {
			return condition{string(c.Type), c.Status, c.Reason, c.Message, [2]metav1.Time{c.LastProbeTime, c.LastTransitionTime}}
		},
		func(c *corev1.PersistentVolumeClaimCondition, to condition) {
			c.Reason, c.Message, c.LastProbeTime, c.LastTransitionTime = to.reason, to.message, to.times[0], to.times[1]
		})
}

func accessModes(d *doubts, modes []corev1.PersistentVolumeAccessMode) []corev1.PersistentVolumeAccessMode {
	var out []corev1.PersistentVolumeAccessMode
	for _, mode := range modes {
		switch mode {
		case corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOncePod:
			if !slices.Contains(out, mode) {
				out = append(out, mode)
			}
		}
	}
	if len(out) == len(modes) {
		return modes
	}
	d.add("accessModes: of %d, only %d are access modes", len(modes), len(out))
	return out
}

// sizes returns the amounts of storage that can be, and the list itself if it has nothing else.
func sizes(d *doubts, what string, list corev1.ResourceList) corev1.ResourceList {
	var out corev1.ResourceList
	largest := resource.NewQuantity(mostBytes, resource.BinarySI)
	for name, amount := range list {
		if name == corev1.ResourceStorage && amount.Sign() >= 0 && amount.Cmp(*largest) <= 0 {
			out = corev1.ResourceList{name: amount}
		}
	}
	if len(out) == len(list) {
		return list
	}
	d.add("%s: amounts that are not of storage are ignored", what)
	return out
}

func resizes(d *doubts, list map[corev1.ResourceName]corev1.ClaimResourceStatus) map[corev1.ResourceName]corev1.ClaimResourceStatus {
	var out map[corev1.ResourceName]corev1.ClaimResourceStatus
	switch status := list[corev1.ResourceStorage]; status {
	case corev1.PersistentVolumeClaimControllerResizeInProgress, corev1.PersistentVolumeClaimControllerResizeInfeasible,
		corev1.PersistentVolumeClaimNodeResizePending, corev1.PersistentVolumeClaimNodeResizeInProgress,
		corev1.PersistentVolumeClaimNodeResizeInfeasible:
		out = map[corev1.ResourceName]corev1.ClaimResourceStatus{corev1.ResourceStorage: status}
	}
	if len(out) == len(list) {
		return list
	}
	d.add("allocatedResourceStatuses: unknown values are ignored")
	return out
}

func modification(m corev1.ModifyVolumeStatus) bool {
	switch m.Status {
	case corev1.PersistentVolumeClaimModifyVolumePending, corev1.PersistentVolumeClaimModifyVolumeInProgress,
		corev1.PersistentVolumeClaimModifyVolumeInfeasible:
	default:
		return false
	}
	return m.TargetVolumeAttributesClassName == "" || len(validation.IsDNS1123Subdomain(m.TargetVolumeAttributesClassName)) == 0
}
