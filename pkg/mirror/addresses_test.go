package mirror

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// addressed is a pod that its cluster says has these addresses.
func addressed(ips ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web"}}
	for _, ip := range ips {
		p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: ip})
	}
	if len(ips) > 0 {
		p.Status.PodIP = ips[0]
	}
	return p
}

func addresses(p *corev1.Pod) string {
	out := []string{p.Status.PodIP}
	for _, ip := range p.Status.PodIPs {
		out = append(out, ip.IP)
	}
	return strings.Join(out, " ")
}

func TestAPodIsShownWithoutAddressesThatNoPodCanHave(t *testing.T) {
	for _, impossible := range []string{
		"127.0.0.1", "127.255.0.9", "::1", "0.0.0.0", "::", "169.254.169.254", "fe80::1", "224.0.0.1", "239.1.2.3", "ff02::1", "::ffff:127.0.0.1", "127.000.000.001",
	} {
		for name, test := range map[string]struct {
			in   *corev1.Pod
			want string
		}{
			"alone":        {addressed(impossible), ""},
			"at first":     {addressed(impossible, "10.2.0.1"), "10.2.0.1 10.2.0.1"},
			"at the end":   {addressed("10.2.0.1", impossible), "10.2.0.1 10.2.0.1"},
			"as the first": {&corev1.Pod{Status: corev1.PodStatus{PodIP: impossible, PodIPs: []corev1.PodIP{{IP: "10.2.0.1"}}}}, "10.2.0.1 10.2.0.1"},
		} {
			if got := addresses(ShowPod(test.in, "west", nil, nil)); got != test.want {
				t.Errorf("%s %s: shown with %q, want %q", impossible, name, got, test.want)
			}
			if got := addresses(Report(addressed(), test.in, "west", nil, 1)); got != test.want {
				t.Errorf("%s %s: reported with %q, want %q", impossible, name, got, test.want)
			}
			if told := Impossible(&test.in.Status); !slices.Equal(told, []string{impossible}) {
				t.Errorf("%s %s: told are %q", impossible, name, told)
			}
		}
	}
}

func TestAPodKeepsTheAddressesThatAPodCanHave(t *testing.T) {
	for _, ips := range [][]string{nil, {"10.2.0.1"}, {"10.2.0.1", "fd00::1"}, {"203.0.113.6"}, {"no address"}} {
		in := addressed(ips...)
		if got := addresses(ShowPod(in, "west", nil, nil)); got != addresses(in) || len(Impossible(&in.Status)) > 0 {
			t.Errorf("%q: shown with %q", ips, got)
		}
	}
}
