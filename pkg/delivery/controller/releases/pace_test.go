package releases

import (
	"testing"
	"time"

	"k8s.io/client-go/tools/cache"
)

func TestLargeApplicationsAreLookedAtLessOften(t *testing.T) {
	web, p := cache.NewObjectName("shop", "web"), pace{}
	for _, test := range []struct {
		objects int
		want    time.Duration
	}{{0, 0}, {10, 2 * time.Millisecond}, {2_000, 400 * time.Millisecond}, {10_000, 2 * time.Second}, {50_000, longest}, {0, 0}} {
		p.note(web, test.objects)
		if got := p.of(web); got != test.want {
			t.Errorf("with %d objects news wait %s, want %s", test.objects, got, test.want)
		}
		if got := p.of(cache.NewObjectName("shop", "other")); got != 0 {
			t.Errorf("those of another application wait %s", got)
		}
	}
	if len(p.objects) > 0 {
		t.Errorf("%v are remembered of nobody", p.objects)
	}
}
