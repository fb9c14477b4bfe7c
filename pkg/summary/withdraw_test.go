package summary

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestWithdraw(t *testing.T) {
	stays, leaves, asks := Presence{Published: true}, Presence{Published: true, Leaves: true}, Presence{Published: true, Leaves: true, Asks: true}
	stale := func(p Presence) Presence { p.Stale = true; return p }
	at := func(ago time.Duration) metav1.Time { return metav1.NewTime(now.Add(-ago)) }
	for name, test := range map[string]struct {
		last     map[string]Withdrawal
		clusters map[string]Presence
		want     map[string]Withdrawal
		again    time.Time
	}{
		"addresses of clusters that stay are in the status": {clusters: map[string]Presence{"east": stays, "west": stays}},
		"those of a cluster that leaves stay until its last replicas are about to go": {
			clusters: map[string]Presence{"east": leaves, "west": stays},
		},
		"then they leave, where another cluster has some": {
			clusters: map[string]Presence{"east": asks, "west": stays}, want: map[string]Withdrawal{"east": {Withdrawn: now}},
		},
		"one without any is no successor": {
			clusters: map[string]Presence{"east": asks, "west": {}}, want: map[string]Withdrawal{"east": {Alone: now}}, again: now.Add(Successor),
		},
		"one that leaves too is no successor": {
			clusters: map[string]Presence{"east": asks, "west": leaves}, want: map[string]Withdrawal{"east": {Alone: now}}, again: now.Add(Successor),
		},
		"one that is silent is no successor": {
			clusters: map[string]Presence{"east": asks, "west": stale(stays)}, want: map[string]Withdrawal{"east": {Alone: now}}, again: now.Add(Successor),
		},
		"a successor is waited for": {
			last:     map[string]Withdrawal{"east": {Alone: at(time.Minute)}},
			clusters: map[string]Presence{"east": asks, "west": {}},
			want:     map[string]Withdrawal{"east": {Alone: at(time.Minute)}}, again: now.Add(Successor - time.Minute),
		},
		"and not for ever": {
			last:     map[string]Withdrawal{"east": {Alone: at(Successor)}},
			clusters: map[string]Presence{"east": asks}, want: map[string]Withdrawal{"east": {Withdrawn: now}},
		},
		"a successor that comes ends that": {
			last:     map[string]Withdrawal{"east": {Alone: at(time.Second)}},
			clusters: map[string]Presence{"east": asks, "west": stays}, want: map[string]Withdrawal{"east": {Withdrawn: now}},
		},
		"the moment at which they left stays": {
			last:     map[string]Withdrawal{"east": {Withdrawn: at(time.Hour)}},
			clusters: map[string]Presence{"east": asks, "west": stays}, want: map[string]Withdrawal{"east": {Withdrawn: at(time.Hour)}},
		},
		"they stay out when nothing is left there, and without a successor": {
			last:     map[string]Withdrawal{"east": {Withdrawn: at(time.Second)}},
			clusters: map[string]Presence{"east": leaves}, want: map[string]Withdrawal{"east": {Withdrawn: at(time.Second)}},
		},
		"a share that returns puts them back": {
			last: map[string]Withdrawal{"east": {Withdrawn: at(time.Second)}}, clusters: map[string]Presence{"east": stays, "west": stays},
		},
		"nothing is remembered of a cluster that has none any more": {
			last: map[string]Withdrawal{"east": {Withdrawn: at(time.Second)}}, clusters: map[string]Presence{"east": {Leaves: true}},
		},
		"who changes its mind waits anew": {
			last: map[string]Withdrawal{"east": {Alone: at(time.Minute)}}, clusters: map[string]Presence{"east": leaves},
		},
		"a silent cluster that has been given up is not asked": {
			clusters: map[string]Presence{"east": stale(leaves), "west": stays}, want: map[string]Withdrawal{"east": {Withdrawn: now}},
		},
		"it keeps them where nobody has others": {clusters: map[string]Presence{"east": stale(leaves)}},
		"silence alone withdraws nothing":       {clusters: map[string]Presence{"east": stale(stays), "west": stays}},
	} {
		t.Run(name, func(t *testing.T) {
			if test.want == nil {
				test.want = map[string]Withdrawal{}
			}
			got, again := Withdraw(test.last, test.clusters, now.Time)
			if !reflect.DeepEqual(got, test.want) || !again.Equal(test.again) {
				t.Errorf("%+v until %s, want %+v until %s", got, again, test.want, test.again)
			}
		})
	}
}

// However clusters come and go, users keep an address, and none is taken that leads to replicas which stay.
// A gateway may have an address before anything behind it answers.
func TestAnAddressThatComesWaitsUntilItIsServed(t *testing.T) {
	serves, unserved := Presence{Published: true}, Presence{Published: true, Unserved: true}
	stale := unserved
	stale.Stale = true
	published := map[string][]string{"east": {"192.0.2.1"}, "west": {"192.0.2.2"}}
	for name, test := range map[string]struct {
		east, west Presence
		withdrawn  map[string]Withdrawal
		shown      []string
		want       bool // west waits
	}{
		"while another one is served":                   {east: serves, west: unserved, shown: []string{"192.0.2.1"}, want: true},
		"not once it is served":                         {east: serves, west: serves, shown: []string{"192.0.2.1"}},
		"not if it is shown already":                    {east: serves, west: unserved, shown: []string{"192.0.2.1", "192.0.2.2"}},
		"not if no other is served":                     {east: unserved, west: unserved, shown: []string{"192.0.2.1"}},
		"not if the other has none":                     {west: unserved},
		"not if the other has left":                     {east: serves, west: unserved, withdrawn: map[string]Withdrawal{"east": {Withdrawn: now}}},
		"not of a cluster that nobody can ask about it": {east: serves, west: stale, shown: []string{"192.0.2.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Early(map[string]Presence{"east": test.east, "west": test.west}, test.withdrawn, published, test.shown)
			if got["west"] != test.want {
				t.Errorf("west waits: %t, want %t", got["west"], test.want)
			}
		})
	}
}

func TestWithdrawNeverTakesWhatStays(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	flip := func() bool { return random.IntN(2) == 0 }
	last, moment := map[string]Withdrawal{}, now.Time
	for range 20_000 {
		moment = moment.Add(time.Duration(random.IntN(200)) * time.Second)
		clusters := map[string]Presence{}
		for _, cluster := range []string{"east", "west", "north"} {
			p := Presence{Published: flip(), Leaves: flip(), Stale: random.IntN(4) == 0}
			p.Asks = p.Leaves && flip()
			clusters[cluster] = p
		}
		next, again := Withdraw(last, clusters, moment)
		for cluster, withdrawal := range next {
			p, before := clusters[cluster], last[cluster]
			switch {
			case !p.Published || !p.Leaves:
				t.Fatalf("%+v is withdrawn of %+v", withdrawal, p)
			case withdrawal.Withdrawn.IsZero() == withdrawal.Alone.IsZero():
				t.Fatalf("%+v is neither out nor on its way", withdrawal)
			case !before.Withdrawn.IsZero() && before.Withdrawn != withdrawal.Withdrawn:
				t.Fatalf("the moment changes from %s to %s", before.Withdrawn, withdrawal.Withdrawn)
			case !withdrawal.Alone.IsZero() && (again.IsZero() || again.After(withdrawal.Alone.Add(Successor))):
				t.Fatalf("%+v is looked at again at %s", withdrawal, again)
			}
		}
		if same, _ := Withdraw(next, clusters, moment); !reflect.DeepEqual(same, next) {
			t.Fatalf("%+v gives %+v the second time", next, same)
		}
		last = next
	}
}

func TestTheTimeThatRemainsIsNoLongerThanTheDrain(t *testing.T) {
	w := Withdrawal{Withdrawn: now}
	for name, test := range map[string]struct {
		after, want time.Duration
	}{
		"at once":                     {0, 30 * time.Second},
		"a while later":               {12 * time.Second, 18 * time.Second},
		"when it is over":             {30 * time.Second, 0},
		"long after":                  {time.Hour, 0},
		"by a clock that is set back": {-time.Hour, 30 * time.Second},
	} {
		if got := w.Remaining(30*time.Second, now.Add(test.after)); got != test.want {
			t.Errorf("%s it is %s, want %s", name, got, test.want)
		}
	}
}

func TestWithdrawnAddressesAreNotInTheStatus(t *testing.T) {
	point := func(ip string) corev1.LoadBalancerIngress {
		return corev1.LoadBalancerIngress{IP: ip, IPMode: ptr.To(corev1.LoadBalancerIPModeVIP)}
	}
	service := func(ip string) *corev1.Service {
		return &corev1.Service{Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{point(ip)}}}}
	}
	ingress := func(host string) *networkingv1.Ingress {
		return &networkingv1.Ingress{Status: networkingv1.IngressStatus{LoadBalancer: networkingv1.IngressLoadBalancerStatus{
			Ingress: []networkingv1.IngressLoadBalancerIngress{{Hostname: host}},
		}}}
	}
	out := Withdrawal{Withdrawn: now}
	got := Service(&corev1.Service{}, map[string]Report{
		"east": {Live: service("192.0.2.1"), Withdrawal: out}, "west": {Live: service("192.0.2.2")}, "north": {Live: service("192.0.2.3"), Withdrawal: Withdrawal{Alone: now}},
	})
	if want := []corev1.LoadBalancerIngress{point("192.0.2.2"), point("192.0.2.3")}; !reflect.DeepEqual(got.LoadBalancer.Ingress, want) {
		t.Errorf("the Service has %+v, want %+v", got.LoadBalancer.Ingress, want)
	}
	points := Ingress(map[string]Report{"east": {Live: ingress("east.example"), Withdrawal: out}, "west": {Live: ingress("west.example")}})
	if want := []networkingv1.IngressLoadBalancerIngress{{Hostname: "west.example"}}; !reflect.DeepEqual(points.LoadBalancer.Ingress, want) {
		t.Errorf("the Ingress has %+v, want %+v", points.LoadBalancer.Ingress, want)
	}
}

func TestTheBreakdownRecordsWithdrawals(t *testing.T) {
	b := ExceptionsOf(map[string]Report{
		"east": {Withdrawal: Withdrawal{Withdrawn: now}}, "west": {}, "north": {Withdrawal: Withdrawal{Alone: now}, Routes: "1"},
	})
	const want = `{"east":{"withdrawn":"2026-02-02T00:00:00Z"},"north":{"routes":"1","alone":"2026-02-02T00:00:00Z"}}`
	if got := b.String(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	read, err := ParseBreakdown(b.String())
	if err != nil {
		t.Fatal(err)
	}
	recorded := read.WithdrawalsOf()
	east, north := recorded["east"], recorded["north"]
	if len(recorded) != 2 || !east.Withdrawn.Equal(&now) || !north.Alone.Equal(&now) || !north.Withdrawn.IsZero() {
		t.Errorf("%+v is read", recorded)
	}
}

func TestAddressesOfAnObjectAreSortedAndEachOnce(t *testing.T) {
	live := &corev1.Service{Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{
		{IP: "192.0.2.9", Hostname: "b.example"}, {Hostname: "a.example"}, {IP: "192.0.2.9"},
	}}}}
	kind, _ := ForResource(corev1.SchemeGroupVersion.WithResource("services"))
	if got, want := kind.Addresses(live), []string{"192.0.2.9", "a.example", "b.example"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for _, kind := range Kinds() {
		if got := kind.Addresses(nil); got != nil {
			t.Errorf("%s: nothing has %q", kind.Resource.Resource, got)
		}
	}
}
