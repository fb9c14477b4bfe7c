package summary

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ofGateways is an object of the Gateway API at a generation with a status, "" for none.
func ofGateways(t *testing.T, kind string, generation int64, status string) *unstructured.Unstructured {
	t.Helper()
	out := gizmo(t, generation, status)
	out.SetAPIVersion("gateway.networking.k8s.io/v1")
	out.SetKind(kind)
	return out
}

func TestStatusesOfTheGatewayAPI(t *testing.T) {
	const ref = `"parentRef":{"group":"gateway.networking.k8s.io","kind":"Gateway","name":"front"},"controllerName":"example.com/gateways"`
	parent := func(conditions string) string { return `{` + ref + `,"conditions":[` + conditions + `]}` }
	accepted := func(status, at string, observed int) string {
		return fmt.Sprintf(`{"type":"Accepted","status":%q,"reason":"Fine","message":"","lastTransitionTime":"2026-11-20T%s:00:00Z","observedGeneration":%d}`, status, at, observed)
	}
	for name, test := range map[string]struct {
		kind        string // Gateway unless it is said
		above       string
		statuses    map[string]string
		leaving     map[string]string
		withdrawals map[string]Withdrawal
		early       map[string]bool
		want        string
	}{
		"a Gateway has the addresses of all clusters": {
			statuses: map[string]string{
				"west": `{"addresses":[{"type":"IPAddress","value":"192.0.2.2"},{"type":"Hostname","value":"lb.example"}]}`,
				"east": `{"addresses":[{"type":"IPAddress","value":"192.0.2.9"},{"type":"IPAddress","value":"192.0.2.2"}]}`,
			},
			want: `{"addresses":[{"type":"IPAddress","value":"192.0.2.9"},{"type":"IPAddress","value":"192.0.2.2"},{"type":"Hostname","value":"lb.example"}]}`,
		},
		"of one cluster, those that it says": {
			statuses: map[string]string{"east": `{"addresses":[{"value":"192.0.2.9"},{"value":"192.0.2.1"}],"listeners":[{"name":"http"}]}`},
			want:     `{"addresses":[{"value":"192.0.2.9"},{"value":"192.0.2.1"}],"listeners":[{"name":"http"}]}`,
		},
		"what is no address of its type is left out": {
			statuses: map[string]string{"east": `{"addresses":[{"type":"IPAddress","value":"1.2.3"},{"type":"Hostname","value":"10.0.0.1"},{"value":7},"x",
				{"type":3,"value":"192.0.2.1"},{"type":"example.com/named","value":"front"},{"type":"Hostname","value":"a.example"}]}`},
			want: `{"addresses":[{"type":"example.com/named","value":"front"},{"type":"Hostname","value":"a.example"}]}`,
		},
		"those of a cluster that it leaves stay until they are withdrawn": {
			statuses: map[string]string{"west": `{}`}, leaving: map[string]string{"east": `{"addresses":[{"value":"192.0.2.1"}]}`},
			withdrawals: map[string]Withdrawal{"east": {Alone: now}}, want: `{"addresses":[{"value":"192.0.2.1"}]}`,
		},
		"and then no longer": {
			statuses: map[string]string{"west": `{"addresses":[{"value":"192.0.2.2"}]}`}, leaving: map[string]string{"east": `{"addresses":[{"value":"192.0.2.1"}]}`},
			withdrawals: map[string]Withdrawal{"east": {Withdrawn: now}}, want: `{"addresses":[{"value":"192.0.2.2"}]}`,
		},
		"those of a cluster that keeps it may be withdrawn too": {
			statuses:    map[string]string{"east": `{"addresses":[{"value":"192.0.2.1"}]}`, "west": `{"addresses":[{"value":"192.0.2.2"}]}`},
			withdrawals: map[string]Withdrawal{"east": {Withdrawn: now}}, want: `{"addresses":[{"value":"192.0.2.2"}]}`,
		},
		"those that lead to nothing yet are left out": {
			statuses: map[string]string{"east": `{"addresses":[{"value":"192.0.2.1"}]}`, "west": `{"addresses":[{"value":"192.0.2.2"}]}`},
			early:    map[string]bool{"west": true}, want: `{"addresses":[{"value":"192.0.2.1"}]}`,
		},
		"also if nothing else is there": {
			statuses: map[string]string{"west": `{"addresses":[{"value":"192.0.2.2"}],"x":1}`}, early: map[string]bool{"west": true}, want: `{"addresses":[],"x":1}`,
		},
		"a Gateway without addresses has none": {statuses: map[string]string{"east": `{"x":1}`, "west": `{"x":1}`}, want: `{"x":1}`},
		"a parent that clusters agree on": {
			kind:     "HTTPRoute",
			statuses: map[string]string{"east": `{"parents":[` + parent(accepted("True", "10", 7)) + `]}`, "west": `{"parents":[` + parent(accepted("True", "11", 7)) + `]}`},
			want:     `{"parents":[` + parent(accepted("True", "10", 3)) + `]}`,
		},
		"a parent that they do not agree on is Unknown": {
			kind:     "GRPCRoute",
			statuses: map[string]string{"east": `{"parents":[` + parent(accepted("True", "10", 7)) + `]}`, "west": `{"parents":[` + parent(accepted("False", "11", 7)) + `]}`},
			want: `{"parents":[` + parent(`{"type":"Accepted","status":"Unknown","reason":"ClustersDiffer","lastTransitionTime":"2026-02-02T00:00:00Z",
				"message":"cluster \"east\": True (Fine); cluster \"west\": False (Fine)"}`) + `]}`,
		},
		"and keeps the time since when it is so": {
			kind:     "HTTPRoute",
			above:    `{"parents":[` + parent(`{"type":"Accepted","status":"Unknown","lastTransitionTime":"2026-01-01T00:00:00Z"}`) + `]}`,
			statuses: map[string]string{"east": `{"parents":[` + parent(accepted("True", "10", 7)) + `]}`, "west": `{"parents":[` + parent(accepted("False", "11", 7)) + `]}`},
			want: `{"parents":[` + parent(`{"type":"Accepted","status":"Unknown","reason":"ClustersDiffer","lastTransitionTime":"2026-01-01T00:00:00Z",
				"message":"cluster \"east\": True (Fine); cluster \"west\": False (Fine)"}`) + `]}`,
		},
		"a cluster to which the route has just come takes nothing away": {
			kind:     "HTTPRoute",
			statuses: map[string]string{"east": `{"parents":[` + parent(accepted("True", "10", 7)) + `]}`, "west": ``},
			want:     `{"parents":[` + parent(accepted("True", "10", 3)) + `]}`,
		},
		"what one cluster has observed is translated in each parent": {
			kind:     "HTTPRoute",
			statuses: map[string]string{"east": `{"parents":[` + parent(accepted("True", "10", 7)) + `]}`},
			want:     `{"parents":[` + parent(accepted("True", "10", 3)) + `]}`,
		},
		"and what it has not observed stays behind": {
			kind:     "HTTPRoute",
			above:    `{"parents":[` + parent(accepted("True", "10", 3)) + `]}`,
			statuses: map[string]string{"east": `{"parents":[` + parent(accepted("True", "10", 6)) + `]}`},
			want:     `{"parents":[` + parent(accepted("True", "10", 2)) + `]}`,
		},
		"other parents are beside it, in the order of the clusters": {
			kind: "TLSRoute",
			statuses: map[string]string{
				"east": `{"parents":[` + parent(accepted("True", "10", 7)) + `,{"parentRef":{"name":"second"},"controllerName":"c"}]}`,
				"west": `{"parents":[{"parentRef":{"name":"third"},"controllerName":"c","conditions":[]},"x",{"parentRef":"y"},` + parent(accepted("True", "10", 7)) + `]}`,
			},
			want: `{"parents":[` + parent(accepted("True", "10", 3)) + `,{"parentRef":{"name":"second"},"controllerName":"c","conditions":[]},
				{"parentRef":{"name":"third"},"controllerName":"c","conditions":[]}]}`,
		},
		"routes have no addresses": {
			kind: "HTTPRoute", statuses: map[string]string{"east": `{"addresses":[{"value":"192.0.2.1"}]}`, "west": `{"addresses":[{"value":"192.0.2.2"}]}`}, want: `null`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if test.kind == "" {
				test.kind = "Gateway"
			}
			in, reports := ofGateways(t, test.kind, 3, test.above), map[string]CustomReport{}
			for cluster, status := range test.statuses {
				reports[cluster] = CustomReport{Generation: 3, Live: ofGateways(t, test.kind, 7, status)}
			}
			decided := clustersOfCustom(reports)
			for cluster, status := range test.leaving {
				reports[cluster] = CustomReport{Generation: 3, Live: ofGateways(t, test.kind, 7, status)}
			}
			before := in.DeepCopy()
			from := CustomInput{Clusters: decided, Reports: reports, Withdrawals: test.withdrawals, Early: test.early, Now: now}
			got := CustomStatus(in, from)
			want := gizmo(t, 0, `{"want":`+test.want+`}`).Object["status"].(map[string]any)["want"]
			var have any
			if got != nil {
				have = got
			}
			if diff := cmp.Diff(want, have); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before.Object, in.Object); diff != "" {
				t.Errorf("the object was changed: %s", diff)
			}
			if got != nil {
				in.Object["status"] = got
				if diff := cmp.Diff(got, CustomStatus(in, from)); diff != "" {
					t.Errorf("the second time it is another: %s", diff)
				}
			}
		})
	}
}

// The definitions of the kinds bound their statuses, and one beyond that would not be taken at all.
func TestStatusesOfTheGatewayAPIStayWithinTheirDefinitions(t *testing.T) {
	var addresses, parents, conditions []string
	for i := range 40 {
		addresses = append(addresses, fmt.Sprintf(`{"value":"192.0.2.%d"}`, i))
	}
	for i := range 12 {
		conditions = append(conditions, fmt.Sprintf(`{"type":"T%d","status":"True"}`, i))
	}
	for i := range 40 {
		parents = append(parents, fmt.Sprintf(`{"parentRef":{"name":"p%d"},"controllerName":"c","conditions":[%s]}`, i, strings.Join(conditions, ",")))
	}
	for _, clusters := range [][]string{{"east"}, {"east", "west"}} {
		reports := func(kind, status string) map[string]CustomReport {
			out := map[string]CustomReport{}
			for _, cluster := range clusters {
				out[cluster] = CustomReport{Generation: 1, Live: ofGateways(t, kind, 1, status)}
			}
			return out
		}
		gateway := CustomStatus(ofGateways(t, "Gateway", 1, ""), CustomInput{
			Clusters: clusters, Reports: reports("Gateway", `{"addresses":[`+strings.Join(addresses, ",")+`]}`), Now: metav1.Now(),
		})
		if got := len(gateway["addresses"].([]any)); got != mostAddresses {
			t.Errorf("%q: %d addresses", clusters, got)
		}
		if len(clusters) == 1 {
			continue // what a single cluster says of parents is shown as it is: its own server has checked it
		}
		route := CustomStatus(ofGateways(t, "HTTPRoute", 1, ""), CustomInput{
			Clusters: clusters, Reports: reports("HTTPRoute", `{"parents":[`+strings.Join(parents, ",")+`]}`), Now: metav1.Now(),
		})
		list := route["parents"].([]any)
		if len(list) != mostParents {
			t.Errorf("%q: %d parents", clusters, len(list))
		}
		for _, entry := range list {
			if got := len(entry.(map[string]any)["conditions"].([]any)); got != mostOfParent {
				t.Fatalf("%q: %d conditions", clusters, got)
			}
		}
	}
}
