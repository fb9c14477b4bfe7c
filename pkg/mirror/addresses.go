package mirror

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	netutils "k8s.io/utils/net"
)

// Impossible returns the addresses that a cluster says a pod has and that no pod can have: of the machine itself, of its link, of nobody. Endpoints
// with one are refused, and with them all others of the same EndpointSlice, so one such pod would keep those of other clusters from being found.
func Impossible(status *corev1.PodStatus) []string {
	var out []string
	for _, ip := range status.PodIPs {
		if impossible(ip.IP) {
			out = append(out, ip.IP)
		}
	}
	if status.PodIP != "" && impossible(status.PodIP) && !slices.Contains(out, status.PodIP) {
		out = append(out, status.PodIP)
	}
	return out
}

// impossible reports whether text is an address that an endpoint cannot have. What is no address at all the API server refuses itself.
func impossible(text string) bool {
	address := netutils.ParseIPSloppy(text) // as endpoints are read
	return address != nil && (address.IsUnspecified() || address.IsLoopback() || address.IsLinkLocalUnicast() || address.IsMulticast())
}

// leaveOutAddresses takes those out of a status. The first one that is left is the one of the pod.
func leaveOutAddresses(status *corev1.PodStatus) {
	if len(Impossible(status)) == 0 {
		return
	}
	status.PodIPs = slices.DeleteFunc(status.PodIPs, func(ip corev1.PodIP) bool { return impossible(ip.IP) })
	if len(status.PodIPs) == 0 {
		status.PodIP, status.PodIPs = "", nil
		return
	}
	status.PodIP = status.PodIPs[0].IP
}
