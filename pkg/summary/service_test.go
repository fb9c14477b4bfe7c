package summary

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestServiceIngressPoints(t *testing.T) {
	points := func(in ...corev1.LoadBalancerIngress) Report {
		return Report{Live: &corev1.Service{Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: in}}}}
	}
	ip := func(address string) corev1.LoadBalancerIngress {
		return corev1.LoadBalancerIngress{IP: address, IPMode: ptr.To(corev1.LoadBalancerIPModeVIP)}
	}
	withPort := ip("192.0.2.1")
	withPort.Ports = []corev1.PortStatus{{Port: 80, Protocol: corev1.ProtocolTCP}}
	host := corev1.LoadBalancerIngress{Hostname: "lb.example.com"}
	tests := map[string]struct {
		reports map[string]Report
		want    []corev1.LoadBalancerIngress
	}{
		"none without clusters":        {nil, nil},
		"none while none is allocated": {map[string]Report{"east": points(), "west": {}}, nil},
		"those of all clusters, sorted": {
			map[string]Report{"east": points(ip("192.0.2.9"), host), "west": points(ip("192.0.2.1"))},
			[]corev1.LoadBalancerIngress{host, ip("192.0.2.1"), ip("192.0.2.9")},
		},
		"each once": {
			map[string]Report{"east": points(ip("192.0.2.1"), host), "west": points(host, ip("192.0.2.1"))},
			[]corev1.LoadBalancerIngress{host, ip("192.0.2.1")},
		},
		"also of a cluster that does not say how it leads there": {
			map[string]Report{"east": points(ip("192.0.2.1")), "west": points(corev1.LoadBalancerIngress{IP: "192.0.2.1"}, host)},
			[]corev1.LoadBalancerIngress{host, ip("192.0.2.1")},
		},
		"the same address with other ports is another point": {
			map[string]Report{"east": points(ip("192.0.2.1")), "north": points(withPort), "west": points(ip("192.0.2.1"))},
			[]corev1.LoadBalancerIngress{ip("192.0.2.1"), withPort},
		},
		"a silent cluster keeps its own": {
			map[string]Report{"east": and(points(ip("192.0.2.1")), silent)}, []corev1.LoadBalancerIngress{ip("192.0.2.1")},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := Service(&corev1.Service{}, test.reports)
			if !reflect.DeepEqual(got.LoadBalancer.Ingress, test.want) {
				t.Errorf("ingress = %+v, want %+v", got.LoadBalancer.Ingress, test.want)
			}
		})
	}
}

func TestServiceConditions(t *testing.T) {
	condition := func(status metav1.ConditionStatus, reason, message string, at metav1.Time) metav1.Condition {
		return metav1.Condition{Type: "Ready", Status: status, Reason: reason, Message: message, LastTransitionTime: at}
	}
	says := func(in ...metav1.Condition) Report {
		return Report{Live: &corev1.Service{Status: corev1.ServiceStatus{Conditions: in}}}
	}
	below := condition("True", "Up", "fine", longAgo)
	below.ObservedGeneration = 12
	other := below
	other.Type, other.ObservedGeneration = "Another", 0
	tests := map[string]struct {
		before  []metav1.Condition
		reports map[string]Report
		want    []metav1.Condition
	}{
		"one cluster's is taken, without its generation": {
			reports: map[string]Report{"east": says(below)}, want: []metav1.Condition{condition("True", "Up", "fine", longAgo)},
		},
		"the same of two is one, of the later time": {
			reports: map[string]Report{"east": says(below), "west": says(condition("True", "Up", "fine", now))},
			want:    []metav1.Condition{condition("True", "Up", "fine", now)},
		},
		"another message of the same status tells both": {
			reports: map[string]Report{"east": says(below), "west": says(condition("True", "Up", "great", longAgo))},
			want:    []metav1.Condition{condition("True", "Up", `cluster "east": True (Up): fine; cluster "west": True (Up): great`, longAgo)},
		},
		"clusters that disagree leave it unknown": {
			reports: map[string]Report{"east": says(below), "west": says(condition("False", "Down", "broken", longAgo))},
			want: []metav1.Condition{
				condition("Unknown", "ClustersDiffer", `cluster "east": True (Up): fine; cluster "west": False (Down): broken`, longAgo),
			},
		},
		"the time of the transition upstream is kept": {
			before:  []metav1.Condition{condition("True", "Up", "fine", longAgo)},
			reports: map[string]Report{"east": says(condition("True", "Up", "fine", now))},
			want:    []metav1.Condition{condition("True", "Up", "fine", longAgo)},
		},
		"types are in order": {
			reports: map[string]Report{"east": says(below, other)},
			want:    []metav1.Condition{other, condition("True", "Up", "fine", longAgo)},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := &corev1.Service{Status: corev1.ServiceStatus{Conditions: test.before}}
			got := Service(in, test.reports)
			if !reflect.DeepEqual(got.Conditions, test.want) {
				t.Errorf("conditions = %+v, want %+v", got.Conditions, test.want)
			}
			in.Status = got
			if again := Service(in, test.reports); !reflect.DeepEqual(again, got) {
				t.Errorf("the same reports give %+v after %+v", again, got)
			}
		})
	}
}
