package main

import (
	"reflect"
	"strings"
	"testing"
)

// graphOf reads lines such as "pkg/cart: pkg/money pkg/stock".
func graphOf(lines ...string) graph {
	out := graph{}
	for _, line := range lines {
		from, to, _ := strings.Cut(line, ":")
		out.add(from, strings.Fields(to)...)
	}
	return out
}

func TestReducedKeepsOnlyArrowsThatDoNotFollowFromOthers(t *testing.T) {
	for name, test := range map[string]struct{ in, want graph }{
		"an arrow that another way implies goes": {
			in:   graphOf("a: b c", "b: c", "c:"),
			want: graphOf("a: b", "b: c", "c:"),
		},
		"an arrow that a long way implies goes": {
			in:   graphOf("a: b e", "b: c", "c: d", "d: e", "e:"),
			want: graphOf("a: b", "b: c", "c: d", "d: e", "e:"),
		},
		"two ways to the same room stay": {
			in:   graphOf("a: b c", "b: d", "c: d", "d:"),
			want: graphOf("a: b c", "b: d", "c: d", "d:"),
		},
		"a room that nobody imports stays": {
			in:   graphOf("a: b", "b:", "c:"),
			want: graphOf("a: b", "b:", "c:"),
		},
		"what is reached in a circle is still reached": {
			in:   graphOf("a: b c", "b: c", "c: b"),
			want: graphOf("a: c", "b: c", "c: b"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.in.reduced(); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
			if again := test.want.reduced(); !reflect.DeepEqual(again, test.want) {
				t.Errorf("reduced once more it is %v, want %v", again, test.want)
			}
		})
	}
}

func TestRoomsGroupPackagesWithoutMakingCircles(t *testing.T) {
	for name, test := range map[string]struct{ in, want graph }{
		"packages are drawn with the folder below pkg that they are in": {
			in:   graphOf("cmd/shop: pkg/cli", "pkg/cli: pkg/cli/output pkg/cart/list", "pkg/cli/output:", "pkg/cart/list: apis/shop/v1", "apis/shop/v1:"),
			want: graphOf("cmd: pkg/cli", "pkg/cli: pkg/cart", "pkg/cart: apis", "apis:"),
		},
		"a controller beside the pure package that others use is drawn apart": {
			in:   graphOf("pkg/sum:", "pkg/sync: pkg/sum", "pkg/sum/controller: pkg/sync pkg/sum"),
			want: graphOf("pkg/sum:", "pkg/sync: pkg/sum", "pkg/sum/controller: pkg/sync pkg/sum"),
		},
		"so is who imports that controller in the same folder": {
			in:   graphOf("pkg/sum:", "pkg/sync: pkg/sum", "pkg/sum/controller: pkg/sync", "pkg/sum/start: pkg/sum/controller"),
			want: graphOf("pkg/sum:", "pkg/sync: pkg/sum", "pkg/sum/controller: pkg/sync", "pkg/sum/start: pkg/sum/controller"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.in.rooms(); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestReplacePutsThePictureBetweenTheMarkers(t *testing.T) {
	picture := graphOf("pkg/cart: pkg/money", "pkg/money:").mermaid()
	want := "# Page\n" + begin + "\n```mermaid\nflowchart TD\n    pkg_cart[\"pkg/cart\"]\n    pkg_money[\"pkg/money\"]\n    pkg_cart --> pkg_money\n```\n" + end + "\nmore\n"
	for name, page := range map[string]string{
		"for the first time":      "# Page\n" + begin + "\n" + end + "\nmore\n",
		"in place of an old one":  "# Page\n" + begin + "\nold\n" + end + "\nmore\n",
		"where nothing has moved": want,
	} {
		t.Run(name, func(t *testing.T) {
			got, err := replace([]byte(page), picture)
			if err != nil || string(got) != want {
				t.Errorf("got %q and error %v, want %q", got, err, want)
			}
		})
	}
	if _, err := replace([]byte("# Page\n"+begin+"\n"), picture); err == nil {
		t.Error("a page without the second marker is taken")
	}
}
