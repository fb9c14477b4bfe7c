package states

import (
	"slices"
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/pkg/identity"
)

func named(name string) identity.Key {
	return identity.Key{Resource: identity.Deployments, Namespace: "shop", Name: name}
}

// log is a cluster's states with what they have told.
type log struct {
	*States[identity.Key]
	enqueued, forgotten []string
}

func newLog() *log {
	l := &log{}
	l.States = New(func(key identity.Key) { l.enqueued = append(l.enqueued, key.Name) },
		func(key identity.Key) { l.forgotten = append(l.forgotten, key.Name) })
	return l
}

// take returns who was woken since it was asked last.
func (l *log) take() []string {
	out := l.enqueued
	l.enqueued = nil
	slices.Sort(out)
	return out
}

func TestWhoWaitsIsWoken(t *testing.T) {
	key, web, api := named("key"), named("web"), named("api")
	for name, test := range map[string]struct {
		does func(*log)
		want []string
	}{
		"by whatever becomes of what it waits for": {func(l *log) { l.Set(key, State{Problem: "taken"}) }, []string{"api", "web"}},
		"also when that is gone":                   {func(l *log) { l.Set(key, State{}) }, []string{"api", "web"}},
		"or comes to the same as before":           {func(l *log) { l.Wake(key) }, []string{"api", "web"}},
		"not by what becomes of others":            {func(l *log) { l.Set(web, State{Hash: "1"}) }, nil},
		"not once it waits no longer":              {func(l *log) { l.Unwait(web); l.Set(key, State{Hash: "1"}) }, []string{"api"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLog()
			l.Await(key, web)
			l.Await(key, api)
			if test.does(l); !slices.Equal(l.take(), test.want) {
				t.Errorf("woke others than %q", test.want)
			}
		})
	}
}

func TestWhatIsWaitedForIsForgotten(t *testing.T) {
	l := newLog()
	for _, object := range []string{"key", "config"} {
		for _, by := range []string{"web", "api"} {
			l.Await(named(object), named(by))
		}
	}
	l.Unwait(named("web"))
	l.Unwait(named("api"))
	if len(l.waitedFor)+len(l.waitsFor) > 0 {
		t.Errorf("remembers %v, %v", l.waitedFor, l.waitsFor)
	}
}

func TestAwaitTellsHowItStands(t *testing.T) {
	l := newLog()
	l.Set(named("key"), State{Problem: "taken"})
	if st := l.Await(named("key"), named("web")); st.Problem != "taken" {
		t.Errorf("state %+v, want the problem", st)
	}
}

func TestProblemsAreCounted(t *testing.T) {
	l := newLog()
	for i, step := range []struct {
		name string
		st   State
		want bool
	}{
		{"web", State{Hash: "1"}, false},
		{"web", State{Problem: "one"}, true},
		{"web", State{Problem: "another"}, true},
		{"api", State{Problem: "one"}, true},
		{"web", State{}, true},
		{"api", State{Hash: "1"}, false},
		{"api", State{}, false},
	} {
		if l.Set(named(step.name), step.st); l.Problems() != step.want {
			t.Errorf("after step %d, there are problems: %t, want %t", i, !step.want, step.want)
		}
	}
	if !slices.Equal(l.forgotten, []string{"web", "api"}) {
		t.Errorf("told that %q are forgotten", l.forgotten)
	}
}

func TestStatesAreFound(t *testing.T) {
	l := newLog()
	for name, st := range map[string]State{
		"held": {Wait: Wait{Held: true}}, "paced": {Wait: Wait{Paced: true}}, "runs": {Hash: "1"}, "fails": {Problem: "taken"}, "noted": {Note: "no class"},
	} {
		l.Set(named(name), st)
	}
	l.Hold(named("fails"))
	l.Hold(named("unknown"))
	names := func(keys []identity.Key) (out []string) {
		for _, key := range keys {
			out = append(out, key.Name)
		}
		slices.Sort(out)
		return out
	}
	if got, want := names(l.Waiting()), []string{"fails", "held", "paced"}; !slices.Equal(got, want) {
		t.Errorf("%q wait, want %q", got, want)
	}
	if got, want := names(l.Troubled()), []string{"fails", "noted"}; !slices.Equal(got, want) {
		t.Errorf("%q are troubled, want %q", got, want)
	}
	if l.Of(named("unknown")) != (State{}) {
		t.Error("something is known of what nobody has looked at")
	}
}

func TestWhatWasToldBeforeCountsUntilItIsGone(t *testing.T) {
	l, web := newLog(), named("web")
	l.Set(web, State{Hash: "1", Told: 2, Most: 3, Before: 10})
	for _, step := range []struct{ replicas, want int32 }{{10, 10}, {4, 10}, {3, 0}, {10, 0}} {
		if l.SettleReplicas(web, step.replicas); l.Of(web).Before != step.want {
			t.Errorf("%d counts once %d replicas are reported, want %d", l.Of(web).Before, step.replicas, step.want)
		}
	}
}

func TestTheFirstLookCounts(t *testing.T) {
	l, web := newLog(), named("web")
	if l.Expects(web) || l.Seen(web) {
		t.Error("it was there at the start although nobody has said so")
	}
	if l.Expect(web); !l.Expects(web) {
		t.Error("it is not expected")
	}
	if !l.Seen(web) || l.Expects(web) || l.Seen(web) {
		t.Error("it is looked at for the first time once")
	}
}

func TestWhatIsKeptForAddressesIsFoundByWhatIsAskedFor(t *testing.T) {
	l, web, api := newLog(), named("web"), named("api")
	other := identity.Key{Resource: identity.Deployments, Namespace: "other", Name: "web"}
	found := func(namespace string) string {
		var out []string
		for _, key := range l.Addressed(func(key identity.Key) bool { return namespace == "" || key.Namespace == namespace }) {
			out = append(out, key.Namespace+"/"+key.Name)
		}
		slices.Sort(out)
		return strings.Join(out, " ")
	}
	kept := State{Hash: "1", Wait: Wait{Held: true, Addressed: true}}
	for _, step := range []struct {
		key       identity.Key
		to        State
		shop, all string
	}{
		{web, kept, "shop/web", "shop/web"},
		{api, State{Hash: "1"}, "shop/web", "shop/web"},
		{api, kept, "shop/api shop/web", "shop/api shop/web"},
		{other, kept, "shop/api shop/web", "other/web shop/api shop/web"},
		{web, State{Hash: "1"}, "shop/api", "other/web shop/api"},
		{api, State{}, "", "other/web"},
		{other, State{}, "", ""},
	} {
		l.Set(step.key, step.to)
		if shop, all := found("shop"), found(""); shop != step.shop || all != step.all {
			t.Errorf("after %s: %q, and %q in all, want %q and %q", step.key, shop, all, step.shop, step.all)
		}
	}
}
