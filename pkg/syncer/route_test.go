package syncer

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/manifold-dev/manifold/pkg/projection"
)

func TestChangesReachTheClustersThatTheyConcern(t *testing.T) {
	using := deployment("web", toEast, usingSecret("key"), runningAs("robot"))
	moved := deployment("web", `{"west":{"replicas":2}}`, usingSecret("new"), runningAs("robot"))
	for name, test := range map[string]struct {
		objects       []projection.Object // above, after the change
		below         []projection.Object // in east
		before, after projection.Object
		east, west    []string
	}{
		"a new workload goes with all that it needs to where it is placed": {
			objects: []projection.Object{using, account("robot", "pull")},
			after:   using,
			east:    []string{"deployments shop/web", "namespaces shop", "secrets shop/key", "secrets shop/pull", "serviceaccounts shop/robot"},
		},
		"a workload that is placed nowhere concerns nobody": {
			objects: []projection.Object{deployment("web", "")},
			after:   deployment("web", ""),
		},
		"a workload that moves concerns both ends, with what it needed and needs": {
			objects: []projection.Object{moved},
			before:  using, after: moved,
			east: []string{"deployments shop/web", "namespaces shop", "secrets shop/key", "serviceaccounts shop/robot"},
			west: []string{"deployments shop/web", "namespaces shop", "secrets shop/new", "serviceaccounts shop/robot"},
		},
		"a workload that lost its decision concerns whoever holds it": {
			objects: []projection.Object{deployment("web", "")},
			below:   []projection.Object{projected(deployment("web", ""), 2, 2)},
			after:   deployment("web", ""),
			east:    []string{"deployments shop/web"},
		},
		"a deleted workload is looked at where it was": {
			before: using,
			east:   []string{"deployments shop/web", "namespaces shop", "secrets shop/key", "serviceaccounts shop/robot"},
		},
		"a Secret reaches the clusters that need it": {
			objects: []projection.Object{using, secret("key")},
			after:   secret("key"),
			east:    []string{"secrets shop/key"},
		},
		"a Secret that nothing needs reaches none": {
			objects: []projection.Object{using, secret("other")},
			after:   secret("other"),
		},
		"a deleted Secret is looked at where it is held": {
			below:  []projection.Object{secret("key")},
			before: secret("key"),
			east:   []string{"secrets shop/key"},
		},
		"the Secrets of a ServiceAccount follow it": {
			objects: []projection.Object{using, account("robot", "new")},
			before:  account("robot", "old"), after: account("robot", "new"),
			east: []string{"secrets shop/new", "secrets shop/old", "serviceaccounts shop/robot"},
			west: []string{"secrets shop/new", "secrets shop/old"},
		},
		"a new workload brings the way to its Service and what the way needs": {
			objects: []projection.Object{using, service("web", map[string]string{"app": "web"}), ingress("site", "web")},
			after:   using,
			east: []string{"deployments shop/web", "ingresses shop/site", "namespaces shop", "secrets shop/key", "secrets shop/site-tls",
				"serviceaccounts shop/robot", "services shop/web"},
		},
		"an Ingress that leads elsewhere is looked at where it is held": {
			objects: []projection.Object{using, service("web", map[string]string{"app": "web"}), ingress("site", "other")},
			below:   []projection.Object{ingress("site", "web")},
			before:  ingress("site", "web"), after: ingress("site", "other"),
			east: []string{"ingresses shop/site", "secrets shop/site-tls"},
			west: []string{"secrets shop/site-tls"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t, test.objects...)
			east, west := attach(t, u, "east", test.below...), attach(t, u, "west")
			of := test.after
			if of == nil {
				of = test.before
			}
			kind, _ := projection.ForResource(resourceOf(of))
			u.router.Route(kind, test.before, test.after)
			if got := east.enqueued(); !slices.Equal(got, test.east) {
				t.Errorf("east looks at %v, want %v", got, test.east)
			}
			if got := west.enqueued(); !slices.Equal(got, test.west) {
				t.Errorf("west looks at %v, want %v", got, test.west)
			}
		})
	}
}

func TestWhatIsHeldIsLookedAtLaterIfItMayNotBeNeededAnyMore(t *testing.T) {
	there := deployment("web", toEast, usingSecret("key"))
	gone := deployment("web", `{"west":{"replicas":2}}`, usingSecret("key"))
	without := deployment("web", toEast)
	divided := deployment("web", `{"east":{"replicas":1},"west":{"replicas":1}}`, usingSecret("key"))
	for name, test := range map[string]struct {
		before, after projection.Object
		want          bool
	}{
		"not for a new workload":        {after: there},
		"not for one that comes":        {before: gone, after: there},
		"for one that leaves":           {before: there, after: gone, want: true},
		"for one that is deleted":       {before: there, want: true},
		"for one that needs it no more": {before: there, after: without, want: true},
		"for one whose share changes, which may be of what has a number": {before: there, after: divided, want: true},
		"not for one elsewhere": {before: gone, after: gone},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := newUpstream(t, secret("key"))
				east := attach(t, u, "east", secret("key"))
				kind, _ := projection.ForResource(deploymentResource)
				u.router.Route(kind, test.before, test.after)
				if slices.Contains(east.enqueued(), "secrets shop/key") {
					t.Error("it is looked at at once, once for each of many workloads")
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if got := slices.Contains(east.enqueued(), "secrets shop/key"); got != test.want {
					t.Errorf("looked at later: %t, want %t", got, test.want)
				}
			})
		})
	}
}
