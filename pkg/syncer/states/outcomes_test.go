package states

import (
	"slices"
	"strings"
	"testing"
)

func TestOutcomes(t *testing.T) {
	problem := State{UID: "of-web", Problem: "the name is taken"}
	for name, test := range map[string]struct {
		last, next  State
		fails       string
		news, woken bool
	}{
		"the first is news":                     {next: State{Hash: "1"}, news: true, woken: true},
		"the same again is not, but wakes":      {last: State{Hash: "1"}, next: State{Hash: "1"}, woken: true},
		"another one is news":                   {last: State{Hash: "1"}, next: State{Hash: "2"}, news: true, woken: true},
		"another revision of a custom resource": {last: State{Hash: "1"}, next: State{Hash: "1", Revision: "web-v1"}, news: true, woken: true},
		"a problem is news":                     {last: State{Hash: "1"}, fails: "the name is taken", news: true, woken: true},
		"the same problem is not":               {last: problem, fails: "the name is taken"},
		"another problem is":                    {last: problem, fails: "no right", news: true, woken: true},
	} {
		t.Run(name, func(t *testing.T) {
			l, key, api := newLog(), named("web"), named("api")
			l.Set(key, test.last)
			l.Await(key, api)
			l.take()
			want, news := test.next, false
			if test.fails != "" {
				want, news = State{UID: "of-web", Problem: test.fails}, l.Fail(key, "of-web", test.fails)
			} else {
				var last State
				if last, news = l.Done(key, test.next); last != test.last {
					t.Errorf("the last was %+v, want %+v", last, test.last)
				}
			}
			if got := l.Of(key); news != test.news || got != want {
				t.Errorf("news %t, state %+v; want %t, %+v", news, got, test.news, want)
			}
			if woken := l.take(); slices.Contains(woken, "api") != test.woken {
				t.Errorf("%v are woken, want that of who waits: %t", woken, test.woken)
			}
		})
	}
}

func TestWhatAClusterWordsIsRememberedInBounds(t *testing.T) {
	l, long := newLog(), strings.Repeat("no ", 10_000)
	l.Fail(named("web"), "", long)
	if got := len(l.Of(named("web")).Problem); got == 0 || got > len(long)/2 {
		t.Errorf("%d characters are remembered", got)
	}
	if l.Fail(named("web"), "", long) {
		t.Error("it is told twice")
	}
}
